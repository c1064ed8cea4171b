import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentSkillRequest } from '../../../src/features/skills/skills.schema.ts';
import type { TestApp } from '../../support/app.ts';

export const skill = (name: string, more: Partial<AgentSkillRequest> = {}): AgentSkillRequest => ({
  name,
  description: `What ${name} does and when to use it.`,
  instructions: `# ${name}\n\nDo it well.\n`,
  ...more,
});

export const save = async (app: Pick<TestApp, 'client'>, body: AgentSkillRequest) => {
  const reply = await app.client.skills.save({ params: { name: body.name }, body });
  return { ...reply.body, status: reply.status, headers: reply.headers };
};

/** Writes files below a folder, folders included. */
export const writeFiles = (folder: string, files: Readonly<Record<string, string | Uint8Array>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
};

export const skillFile = (name: string, body = 'Do it.\n'): string =>
  `---\nname: ${name}\ndescription: What ${name} does.\n---\n${body}`;

/** What an audit entry has in place of a content. */
export const hashOf = (text: string) => ({
  byteSize: Buffer.byteLength(text),
  sha256: createHash('sha256').update(text).digest('hex'),
});
