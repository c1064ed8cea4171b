import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import { AcpError } from '../../contract/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';
import type { AgentSkillDefinition, AgentSkillRequest } from '../../features/skills/skills.schema.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers } from '../command-host.ts';
import { jsonText } from '../output/print-reply.ts';
import type { Session } from '../session.ts';
import { isFolder, readSkillSources, refusedSource, type SkillSource } from '../skill-sources.ts';

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

const apply = async (client: Client, source: SkillSource, isDryRun: boolean): Promise<Outcome> => {
  const { body, notes } = source;
  const { name } = body;
  const before = await stored(client, name);
  if (before !== null && isDeepStrictEqual(said(before), said(body)))
    return { name, action: 'unchanged', version: before.version, notes };
  const action = before === null ? 'created' : 'updated';
  if (isDryRun) return { name, action, version: (before?.version ?? 0) + 1, notes };
  try {
    const saved = await client.skills.save({ params: { name }, body });
    return { name, action, version: saved.body.version, notes };
  } catch (error) {
    throw error instanceof AcpError ? refusedSource(error, source) : error;
  }
};

const printOutcomes = async (
  { terminal, globals }: Session,
  outcomes: readonly Outcome[],
  isDryRun: boolean,
): Promise<void> => {
  if (globals.json) return terminal.writeJson(jsonText(outcomes));
  for (const { name, action, version, notes } of outcomes) {
    const dry = isDryRun ? terminal.style.dim('  (dry run)') : '';
    await terminal.write(`${action.padEnd(9)}  ${safeLine(name)}  version ${version}${dry}\n`);
    for (const note of notes) terminal.note(`${terminal.noteStyle.yellow('note:')} ${safeLine(`${name}: ${note}`)}`);
  }
};

const applyAll = async (session: Session, paths: readonly string[], isDryRun: boolean): Promise<void> => {
  const sources = await readSkillSources(paths, session.terminal);
  const outcomes: Outcome[] = [];
  try {
    await session.connected(
      async ({ client }) => {
        for (const source of sources) outcomes.push(await apply(client, source, isDryRun));
      },
      isDryRun ? 'preview' : 'work',
    );
  } finally {
    // Those before a refused one are saved, and applying again goes on from there.
    if (outcomes.length > 0 || sources.length === 0) await printOutcomes(session, outcomes, isDryRun);
  }
};

const exportSkill = async (session: Session, name: string, folder: string): Promise<void> => {
  const { body } = await session.connected(({ client }) => client.skills.get({ params: { name } }));
  const { writeSkillFolder, SkillFileError } = await import('../../core/skill-folder/skill-folder.ts');
  if ((await isFolder(folder)) && (await readdir(folder)).length > 0)
    throw new AcpError('validation-failed', `${folder} is not empty; nothing was written.`);
  try {
    for (const { path, text } of writeSkillFolder(body)) {
      makeFolder(dirname(join(folder, path)));
      // A skill keeps no modes; a script that names its program is one that people start.
      await writeFile(join(folder, path), text, { mode: text.startsWith('#!') ? 0o755 : 0o644 });
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
    .description('save skills from Agent Skills folders or YAML files; unchanged ones get no new version')
    .argument('<path...>', 'skill folder, folder of skill folders, YAML file, or - for the standard input')
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
