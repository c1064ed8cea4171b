import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { parseDefinitionDocuments } from '../../../src/core/documents/definition-documents.ts';
import { type CodeAgents, loadCodeAgents } from '../../../src/features/agents/index.ts';
import { references } from './agent-world.ts';

/** A folder with these files, gone when the test ends. */
export const folderOf = async (context: TestContext, files: Readonly<Record<string, string>>): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'acp-agents-'));
  context.after(() => rm(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
};

export const load = (...paths: string[]): Promise<CodeAgents> =>
  loadCodeAgents(paths, { ...references, parse: parseDefinitionDocuments });

/** Code agents as a host has them that gives these definitions in one file. */
export const codeAgentsOf = async (context: TestContext, ...definitions: object[]): Promise<CodeAgents> => {
  const text = definitions.map((definition) => JSON.stringify(definition)).join('\n---\n');
  return load(await folderOf(context, { 'agents.yaml': text }));
};
