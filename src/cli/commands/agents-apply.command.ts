import type { Command } from 'commander';
import type { DefinitionDocument, DefinitionProblem } from '../../contract/definition-document.ts';
import { AcpError, errorTable, type FieldError } from '../../contract/errors.ts';
import type { StyleName } from '../../text/style.ts';
import { padText, safeLine, textWidth } from '../../text/text-width.ts';
import { type Applied, type ApplyAction, applyDefinition, previewDefinition } from '../apply-definition.ts';
import { type CommandHost, collect, covers, type Invocation } from '../command-host.ts';
import { inDependencyOrder, readDefinitions } from '../definition-sources.ts';
import { reportError } from '../output/error-report.ts';
import { jsonText } from '../output/print-reply.ts';
import type { Session } from '../session.ts';

interface ApplyOptions {
  readonly file?: readonly string[];
  readonly dryRun?: boolean;
}

/** What became of one document, as `--json` prints it. */
interface Outcome {
  readonly name: string | null;
  readonly action: ApplyAction | 'failed';
  readonly version: number | null;
  readonly file: string;
  readonly line: number | null;
  readonly errors?: readonly (FieldError & { readonly line: number | null })[];
  readonly warnings?: readonly FieldError[];
  readonly exitCode: number;
}

const actionStyles: Readonly<Record<Outcome['action'], StyleName>> = {
  created: 'green',
  updated: 'cyan',
  unchanged: 'dim',
  failed: 'red',
};

const unreadable = ({ file, line, name, field, message }: DefinitionProblem): Outcome => ({
  name,
  action: 'failed',
  version: null,
  file,
  line,
  errors: [{ path: field, message, line }],
  exitCode: errorTable['definition-invalid'].exit,
});

const failed = (document: DefinitionDocument, name: string | null, error: unknown): Outcome => {
  const { exitCode, problem } = reportError(error);
  const fields =
    problem.errors === undefined || problem.errors.length === 0
      ? [{ path: '', message: problem.detail }]
      : problem.errors;
  const errors = fields.map((field) => ({ ...field, line: document.lineOf(field.path) }));
  return { name, action: 'failed', version: null, file: document.file, line: document.line, errors, exitCode };
};

const succeeded = ({ file, line }: DefinitionDocument, name: string, applied: Applied): Outcome => {
  const warnings = applied.warnings.map(({ path, message }) => ({ path: path ?? '', message }));
  const { action, version } = applied;
  return { name, action, version, file, line, ...(warnings.length === 0 ? {} : { warnings }), exitCode: 0 };
};

const nameOf = ({ value }: DefinitionDocument): string => {
  const { name } = value;
  if (typeof name === 'string' && name !== '') return name;
  throw new AcpError('definition-invalid', 'A definition needs a name.', {
    details: { errors: [{ path: 'name', message: 'is missing or no text' }] },
  });
};

/** A service that cannot be reached, or refuses this credential, will do so for every document. */
const endsAll = (error: unknown): boolean =>
  error instanceof AcpError &&
  [errorTable['cannot-connect'].exit, errorTable.unauthenticated.exit].includes(errorTable[error.code].exit);

const printer = ({ terminal, globals }: Session, names: readonly string[], isDryRun: boolean) => {
  const width = Math.max(0, ...names.map((name) => textWidth(safeLine(name))));
  const { style, noteStyle } = terminal;
  return async (outcome: Outcome): Promise<void> => {
    if (globals.json) return;
    const { action, name, version, file, line } = outcome;
    const what = style[actionStyles[action]](action.padEnd(9));
    const which = padText(safeLine(name ?? '-'), width);
    const at = (number: number | null): string => (number === null ? file : `${file}:${number}`);
    const where = version === null ? at(line) : `version ${version}`;
    await terminal.write(`${what}  ${which}  ${where}${isDryRun ? style.dim('  (dry run)') : ''}\n`);
    const place = (path: string): string => (path === '' ? '' : `${path}: `);
    for (const error of outcome.errors ?? [])
      terminal.note(`${noteStyle.red('error:')} ${at(error.line)}: ${safeLine(place(error.path) + error.message)}`);
    for (const warning of outcome.warnings ?? [])
      terminal.note(`${noteStyle.yellow('warning:')} ${file}: ${safeLine(place(warning.path) + warning.message)}`);
  };
};

const apply = async (session: Session, { options }: Invocation): Promise<number> => {
  const { file = [], dryRun = false } = options as ApplyOptions;
  const { documents, problems } = await readDefinitions(file, session.terminal);
  const names = documents.map(({ value }) => value['name']).filter((name) => typeof name === 'string');
  const print = printer(session, names, dryRun);
  const outcomes: Outcome[] = [];
  const add = async (outcome: Outcome): Promise<void> => {
    outcomes.push(outcome);
    await print(outcome);
  };
  for (const problem of problems) await add(unreadable(problem));
  await session.connected(async ({ client }) => {
    const batch = new Set(names);
    const seen = new Map<string, DefinitionDocument>();
    for (const document of inDependencyOrder(documents)) {
      let name: string | null = null;
      try {
        name = nameOf(document);
        const earlier = seen.get(name);
        if (earlier !== undefined)
          throw new AcpError('definition-invalid', `${name} is also defined at ${earlier.file}:${earlier.line}.`);
        seen.set(name, document);
        const applied = dryRun
          ? await previewDefinition(client, document, name, batch)
          : await applyDefinition(client, document, name);
        await add(succeeded(document, name, applied));
      } catch (error) {
        if (endsAll(error)) throw error;
        await add(failed(document, name, error));
      }
    }
  });
  if (session.globals.json)
    await session.terminal.write(jsonText(outcomes.map(({ exitCode: _exitCode, ...shown }) => shown)));
  return outcomes.find(({ exitCode }) => exitCode !== 0)?.exitCode ?? 0;
};

/** `acp agents apply`: brings stored agents into the state that files describe, any number of times. */
export const registerAgentsApply = (agents: Command, host: CommandHost): void => {
  const command = agents
    .command('apply')
    .description('create or update agents from YAML files; unchanged ones get no new version')
    .option('-f, --file <path>', 'file, folder, or - for the standard input; many documents each (repeatable)', collect)
    .option('--dry-run', 'check everything and say what would happen, write nothing');
  covers(command, 'agents.create', 'agents.save', 'agents.validate').action(host.act(apply));
};
