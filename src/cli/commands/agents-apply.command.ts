import type { Command } from 'commander';
import type { Client } from '../../client/client.ts';
import type { FieldError } from '../../contract/errors.ts';
import type { StyleName } from '../../text/style.ts';
import { padText, safeLine, textWidth } from '../../text/text-width.ts';
import { type CommandHost, collect, covers, type Invocation } from '../command-host.ts';
import { agentDocuments } from '../definitions/agent-documents.ts';
import { type ApplyAction, applyDefinition } from '../definitions/apply-definition.ts';
import {
  type CheckedDefinition,
  checkDefinitions,
  endsAll,
  type PlacedFinding,
  refusalFindings,
  unreadableDefinition,
} from '../definitions/check-definitions.ts';
import { type BatchMember, definitionBatch } from '../definitions/definition-batch.ts';
import { type DefinitionSources, readDefinitions } from '../definitions/definition-sources.ts';
import { reportError } from '../output/error-report.ts';
import { findingLine, placeOf } from '../output/finding-line.ts';
import type { Session } from '../session.ts';

interface ApplyOptions {
  readonly file?: readonly string[];
  readonly dryRun?: boolean;
}

type PlacedField = FieldError & { readonly line: number | null };

/** What became of one document, as `--json` prints it. */
interface Outcome {
  readonly name: string | null;
  readonly action: ApplyAction | 'failed';
  readonly version: number | null;
  readonly file: string;
  readonly line: number | null;
  readonly errors?: readonly PlacedField[];
  readonly warnings?: readonly PlacedField[];
  readonly exitCode: number;
}

const actionStyles: Readonly<Record<Outcome['action'], StyleName>> = {
  created: 'green',
  updated: 'cyan',
  unchanged: 'dim',
  failed: 'red',
};

const fieldOf = ({ path, message, line }: PlacedFinding): PlacedField => ({ path, message, line });

/** What a check has found, as the outcome of applying. */
const previewed = ({ name, file, line, findings, would, exitCode }: CheckedDefinition): Outcome => {
  const { Error: errors = [], Warning: warnings = [] } = Object.groupBy(findings, ({ severity }) => severity);
  return {
    name,
    action: would?.action ?? 'failed',
    version: would?.version ?? null,
    file,
    line,
    ...(errors.length === 0 ? {} : { errors: errors.map(fieldOf) }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(fieldOf) }),
    exitCode,
  };
};

const applied = async (client: Client, { document, name, fault }: BatchMember): Promise<Outcome> => {
  const { file, line } = document;
  try {
    if (fault !== null) throw fault;
    const { action, version } = await applyDefinition(client, document, name ?? '');
    return { name, action, version, file, line, exitCode: 0 };
  } catch (error) {
    if (endsAll(error)) throw error;
    const errors = refusalFindings(document, error).map(fieldOf);
    return { name, action: 'failed', version: null, file, line, errors, exitCode: reportError(error).exitCode };
  }
};

const applyAll = async function* (client: Client, { documents, problems }: DefinitionSources): AsyncGenerator<Outcome> {
  for (const problem of problems) yield previewed(unreadableDefinition(problem));
  for (const member of definitionBatch(documents)) yield await applied(client, member);
};

const previewAll = async function* (client: Client, sources: DefinitionSources): AsyncGenerator<Outcome> {
  for await (const checked of checkDefinitions(client, sources)) yield previewed(checked);
};

const printer = ({ terminal, globals }: Session, names: readonly string[], isDryRun: boolean) => {
  const width = Math.max(0, ...names.map((name) => textWidth(safeLine(name))));
  const { style, noteStyle } = terminal;
  return async (outcome: Outcome): Promise<void> => {
    if (globals.json) return;
    const { action, name, version, file, line } = outcome;
    const what = style[actionStyles[action]](action.padEnd(9));
    const which = padText(safeLine(name ?? '-'), width);
    const where = version === null ? placeOf(file, line) : `version ${version}`;
    await terminal.write(`${what}  ${which}  ${where}${isDryRun ? style.dim('  (dry run)') : ''}\n`);
    for (const error of outcome.errors ?? [])
      terminal.note(findingLine(noteStyle, { severity: 'Error', file, ...error }));
    for (const warning of outcome.warnings ?? [])
      terminal.note(findingLine(noteStyle, { severity: 'Warning', file, ...warning }));
  };
};

const apply = async (session: Session, { options }: Invocation): Promise<number> => {
  const { file = [], dryRun = false } = options as ApplyOptions;
  const sources = await agentDocuments(await readDefinitions(file, session.terminal));
  const names = sources.documents.map(({ value }) => value['name']).filter((name) => typeof name === 'string');
  const print = printer(session, names, dryRun);
  const outcomes: Outcome[] = [];
  await session.connected(
    async ({ client }) => {
      for await (const outcome of dryRun ? previewAll(client, sources) : applyAll(client, sources)) {
        outcomes.push(outcome);
        await print(outcome);
      }
    },
    dryRun ? 'preview' : 'work',
  );
  if (session.globals.json) await session.print(outcomes.map(({ exitCode: _exitCode, ...shown }) => shown));
  return outcomes.find(({ exitCode }) => exitCode !== 0)?.exitCode ?? 0;
};

/** `acp agents apply`: brings stored agents into the state that files describe, any number of times. */
export const registerAgentsApply = (agents: Command, host: CommandHost): void => {
  const command = agents
    .command('apply')
    .description('create or update agents from YAML files; unchanged agents get no new version')
    .option(
      '-f, --file <path>',
      'file, folder, or - for the standard input; a file can hold many documents (repeatable)',
      collect,
    )
    .option('--dry-run', 'check everything and show the changes, write nothing');
  covers(command, 'agents.create', 'agents.save', 'agents.validate').action(host.act(apply));
};
