import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../core/files/private-file.ts';
import type { AgentSkillDefinition } from '../../features/skills/skills.schema.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { skillContent } from '../definitions/skill-content.ts';
import { readSkillSources, refusedSource, type SkillSource } from '../definitions/skill-sources.ts';
import { isFolder } from '../files/read-body.ts';
import type { Session } from '../session.ts';

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

const apply = async (client: Client, source: SkillSource, isDryRun: boolean): Promise<Outcome> => {
  const { body, notes } = source;
  const { name } = body;
  const before = await stored(client, name);
  if (before !== null && isDeepStrictEqual(skillContent(before), skillContent(body)))
    return { name, action: 'unchanged', version: before.version, notes };
  const action = before === null ? 'created' : 'updated';
  if (isDryRun) return { name, action, version: (before?.version ?? 0) + 1, notes };
  try {
    const saved = await client.skills.save({ params: { name }, body });
    return { name, action, version: saved.body.version, notes };
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    const readable = error.code === 'interpreter-not-registered' ? await withoutPrograms(source, error) : null;
    if (readable === null) throw refusedSource(error, source);
    return apply(client, readable, isDryRun);
  }
};

/** The skill with the scripts that no program of the host runs as texts to be read; null: there are none such. */
const withoutPrograms = async (source: SkillSource, error: AcpError): Promise<SkillSource | null> => {
  const { scriptAsResource } = await import('../../core/skill-folder/skill-folder.ts');
  const { scripts = [], resources = [] } = source.body;
  const named = new Set(
    (error.details.errors ?? []).map(({ path }) => /^scripts\[(\d+)\]\.extension$/.exec(path)?.[1]),
  );
  const lost = scripts.filter((_script, index) => named.has(String(index)));
  if (lost.length === 0) return null;
  const texts = lost.map((script) => scriptAsResource({ ...script, description: script.description ?? null }));
  const extensions = [...new Set(lost.map(({ extension }) => extension))].join(', ');
  const note = `${texts.map((one) => one.name).join(', ')} can be read and not run: there is no Service:Skills:Scripts:Interpreters entry for ${extensions}.`;
  const body = {
    ...source.body,
    scripts: scripts.filter((script) => !lost.includes(script)),
    // In the order in which a folder is read.
    resources: [...resources, ...texts].sort((left, right) => (left.name < right.name ? -1 : 1)),
  };
  // The members are no longer where the folder had them, and the path of a resource is its file.
  const place = (member: string): string =>
    member.replace(/^resources\[(\d+)\]/, (whole, index) => body.resources[Number(index)]?.name ?? whole);
  return { ...source, body, place, notes: [...source.notes, note] };
};

const printOutcomes = async (
  { terminal, globals, print }: Session,
  outcomes: readonly Outcome[],
  isDryRun: boolean,
): Promise<void> => {
  if (globals.json) return print(outcomes);
  for (const { name, action, version, notes } of outcomes) {
    const dry = isDryRun ? terminal.style.dim('  (dry run)') : '';
    await terminal.write(`${action.padEnd(9)}  ${safeLine(name)}  version ${version}${dry}\n`);
    for (const note of notes) terminal.note(`${terminal.noteStyle.yellow('note:')} ${safeLine(`${name}: ${note}`)}`);
  }
};

const refusals: ReadonlySet<string> = new Set([
  'validation-failed',
  'interpreter-not-registered',
  'skill-code-defined',
  'name-mismatch',
  'payload-too-large',
]);

const applyAll = async (session: Session, paths: readonly string[], isDryRun: boolean): Promise<void> => {
  const { sources, refused: unread } = await readSkillSources(paths, session.terminal);
  const refused = [...unread];
  const outcomes: Outcome[] = [];
  try {
    await session.connected(
      async ({ client }) => {
        for (const source of sources)
          try {
            outcomes.push(await apply(client, source, isDryRun));
          } catch (error) {
            // What is wrong with one skill says nothing about the next; anything else would be met again.
            if (!(error instanceof AcpError && refusals.has(error.code))) throw error;
            refused.push(error);
          }
      },
      isDryRun ? 'preview' : 'work',
    );
  } finally {
    // Those before an end are saved, and applying again goes on from there.
    if (outcomes.length > 0 || sources.length === 0) await printOutcomes(session, outcomes, isDryRun);
  }
  const [only, ...others] = refused;
  if (only === undefined) return;
  if (others.length === 0) throw only;
  const lines = refused.map(({ message }) => `\n  ${message}`).join('');
  const errors = refused.flatMap(({ details }) => details.errors ?? []);
  throw new AcpError(only.code, `${refused.length} skills were refused:${lines}`, {
    ...(errors.length === 0 ? {} : { details: { errors } }),
  });
};

const exportSkill = async (session: Session, name: string, folder: string): Promise<void> => {
  const { body } = await session.connected(({ client }) => client.skills.get({ params: { name } }));
  const { fileBytes, writeSkillFolder, SkillFileError } = await import('../../core/skill-folder/skill-folder.ts');
  if ((await isFolder(folder)) && (await readdir(folder)).length > 0)
    throw new AcpError('validation-failed', `${folder} is not empty; nothing was written.`);
  try {
    for (const { path, text, encoding } of writeSkillFolder(body)) {
      makeFolder(dirname(join(folder, path)), privateFolderMode);
      // A skill keeps no modes; a script that names its program is one that people start.
      const mode = encoding === undefined && text.startsWith('#!') ? privateFolderMode : privateFileMode;
      await writeFile(join(folder, path), fileBytes(text, encoding), { mode });
    }
  } catch (error) {
    if (error instanceof SkillFileError) throw new AcpError('validation-failed', error.message);
    if (error instanceof Error && 'syscall' in error && 'code' in error)
      throw new AcpError('validation-failed', `${folder} cannot be written (${String(error.code)}).`, { cause: error });
    throw error;
  }
  session.terminal.note(`Skill ${name}, version ${body.version}, is in ${folder}.`);
};

/** `acp skills apply` and `acp skills export`: Agent Skills folders in and out. */
export const registerSkills = (skills: Command, host: CommandHost): void => {
  const applying = skills
    .command('apply')
    .description('save skills from Agent Skills folders or YAML files; unchanged skills get no new version')
    .argument('<path...>', 'skill folder, folder of skill folders, YAML file, or - for the standard input')
    .option('--dry-run', 'read everything and show the changes, write nothing; only a save checks limits');
  covers(applying, 'skills.save').action(
    host.act((session, { args, options }) => applyAll(session, args[0] as string[], options['dryRun'] === true)),
  );
  const exporting = skills
    .command('export')
    .description('write a skill as an Agent Skills folder')
    .argument('<name>')
    .requiredOption('-o, --output <folder>', 'new or empty folder');
  covers(exporting, 'skills.get').action(
    host.act((session, { args, options }) => exportSkill(session, String(args[0]), String(options['output']))),
  );
};
