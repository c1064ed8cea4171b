import { mkdir, readdir, realpath, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import type { AgentSkillDefinition, AgentSkillRequest } from '../../features/skills/skills.schema.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { jsonText } from '../output/print-reply.ts';
import { readText } from '../read-body.ts';
import type { Session } from '../session.ts';

interface Read {
  readonly body: AgentSkillRequest;
  readonly notes: readonly string[];
}

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // A path that is not there is told by the attempt to read it.
    return false;
  }
};

const readFolder = async (path: string): Promise<Read> => {
  const { readFolderFiles, FolderTooLargeError } = await import('../../core/skill-folder/read-files.ts');
  const { readSkillFolder, SkillFileError } = await import('../../core/skill-folder/skill-folder.ts');
  try {
    const { files, leftOut } = await readFolderFiles(path, await realpath(path));
    const { skill, notes } = readSkillFolder(files);
    const body = {
      ...skill,
      metadata: { ...skill.metadata },
      resources: [...skill.resources],
      scripts: [...skill.scripts],
    };
    return { body, notes: [...notes, ...leftOut.map((file) => `${file.path} is left out: ${file.reason}.`)] };
  } catch (error) {
    if (!(error instanceof SkillFileError || error instanceof FolderTooLargeError)) throw error;
    throw new AcpError('validation-failed', `${path}: ${error.message}`);
  }
};

const readSkills = async (path: string, { terminal }: Session): Promise<readonly Read[]> => {
  if (path !== '-' && (await isFolder(path))) return [await readFolder(path)];
  const { parseDefinitionDocuments } = await import('../../core/definition-documents.ts');
  const { documents, problems } = parseDefinitionDocuments(await readText(path, terminal), path);
  const [problem] = problems;
  if (problem !== undefined)
    throw new AcpError('validation-failed', `${path}:${problem.line ?? 1}: ${problem.message}`);
  // The service checks the body, so nothing is relied on here.
  return documents.map(({ value }) => ({ body: value as unknown as AgentSkillRequest, notes: [] }));
};

/** What a skill says, defaults applied, without what tells about its version. */
const said = (skill: AgentSkillRequest): object => ({
  name: skill.name,
  description: skill.description,
  instructions: skill.instructions,
  compatibility: skill.compatibility ?? null,
  license: skill.license ?? null,
  allowedTools: skill.allowedTools ?? null,
  metadata: skill.metadata ?? {},
  enabled: skill.enabled ?? true,
  resources: (skill.resources ?? []).map((resource) => ({ description: null, mediaType: 'text/plain', ...resource })),
  scripts: (skill.scripts ?? []).map((script) => ({ description: null, parametersSchema: null, ...script })),
});

const stored = async (client: Client, name: string): Promise<AgentSkillDefinition | null> => {
  try {
    return (await client.skills.get({ params: { name } })).body;
  } catch (error) {
    if (error instanceof AcpError && error.code === 'skill-not-found') return null;
    throw error;
  }
};

/** What became of one skill, as `--json` prints it; of a dry run, what would. */
interface Outcome {
  readonly name: string;
  readonly action: 'created' | 'updated' | 'unchanged';
  readonly version: number;
  readonly notes: readonly string[];
}

const apply = async (client: Client, { body, notes }: Read, isDryRun: boolean): Promise<Outcome> => {
  const { name } = body;
  if (typeof name !== 'string' || name === '') throw new AcpError('validation-failed', 'A skill needs a name.');
  const before = await stored(client, name);
  if (before !== null && isDeepStrictEqual(said(before), said(body)))
    return { name, action: 'unchanged', version: before.version, notes };
  if (isDryRun)
    return { name, action: before === null ? 'created' : 'updated', version: (before?.version ?? 0) + 1, notes };
  const saved = await client.skills.save({ params: { name }, body });
  return { name, action: before === null ? 'created' : 'updated', version: saved.body.version, notes };
};

const applyAll = async (session: Session, paths: readonly string[], isDryRun: boolean): Promise<void> => {
  const reads: Read[] = [];
  for (const path of paths) reads.push(...(await readSkills(path, session)));
  const { terminal, globals } = session;
  const outcomes = await session.connected(async ({ client }) => {
    const done: Outcome[] = [];
    for (const read of reads) done.push(await apply(client, read, isDryRun));
    return done;
  });
  if (globals.json) return terminal.write(jsonText(outcomes));
  for (const { name, action, version, notes } of outcomes) {
    const dry = isDryRun ? terminal.style.dim('  (dry run)') : '';
    await terminal.write(`${action.padEnd(9)}  ${safeLine(name)}  version ${version}${dry}\n`);
    for (const note of notes) terminal.note(`${terminal.noteStyle.yellow('note:')} ${safeLine(note)}`);
  }
};

const exportSkill = async (session: Session, name: string, folder: string): Promise<void> => {
  const { body } = await session.connected(({ client }) => client.skills.get({ params: { name } }));
  const { writeSkillFolder, SkillFileError } = await import('../../core/skill-folder/skill-folder.ts');
  if ((await isFolder(folder)) && (await readdir(folder)).length > 0)
    throw new AcpError('validation-failed', `${folder} is not empty; nothing was written.`);
  try {
    for (const { path, text } of writeSkillFolder(body)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text);
    }
  } catch (error) {
    if (error instanceof SkillFileError) throw new AcpError('validation-failed', error.message);
    throw error;
  }
  session.terminal.note(`Skill ${name}, version ${body.version}, is in ${folder}.`);
};

/** `acp skills apply` and `acp skills export`: Agent Skills folders in and out. */
export const registerSkills = (skills: Command, host: CommandHost): void => {
  const applying = skills
    .command('apply')
    .description('save skills from Agent Skills folders or YAML files; unchanged ones get no new version')
    .argument('<path...>', 'folder with a SKILL.md, file, or - for the standard input')
    .option('--dry-run', 'read everything and say what would happen, write nothing; limits are checked by a save only');
  covers(applying, 'skills.save').action(
    host.act(async (session, { args, options }) => {
      await applyAll(session, args[0] as string[], options['dryRun'] === true);
      return undefined;
    }),
  );
  const exporting = skills
    .command('export')
    .description('write a skill as an Agent Skills folder')
    .argument('<name>')
    .requiredOption('-o, --output <folder>', 'new or empty folder');
  covers(exporting, 'skills.get').action(
    host.act(async (session, { args, options }) => {
      await exportSkill(session, String(args[0]), String(options['output']));
      return undefined;
    }),
  );
};
