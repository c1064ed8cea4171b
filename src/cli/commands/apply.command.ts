import { AcpError } from '../../contract/errors.ts';
import type { StyleName } from '../../text/style.ts';
import { padText, safeLine, textWidth } from '../../text/text-width.ts';
import { type CommandHost, collect, covers, type Invocation } from '../command-host.ts';
import type { Outcome } from '../declarations/apply-declarations.ts';
import type { Declarations } from '../declarations/read-declarations.ts';
import { findingLine, placeOf } from '../output/finding-line.ts';
import { OutputClosedError } from '../output/terminal.ts';
import type { Session } from '../session.ts';

interface ApplyOptions {
  readonly file?: readonly string[];
  readonly dryRun?: boolean;
  readonly diff?: boolean;
  readonly exitCode?: boolean;
  readonly prune?: string | true;
}

const actionStyles: Readonly<Record<Outcome['action'], StyleName>> = {
  created: 'green',
  updated: 'cyan',
  unchanged: 'dim',
  deleted: 'yellow',
  failed: 'red',
};

/** Prints outcomes as they come, or keeps them for `--json`. */
const createReport = async (session: Session, declarations: Declarations, { dryRun, diff, prune }: ApplyOptions) => {
  const { outcomeDiff } = await import('../declarations/declaration-yaml.ts');
  // What is pruned may be of any kind.
  const { kindNames } = await import('../declarations/declaration-kinds.ts');
  const { terminal, globals } = session;
  const { style, noteStyle } = terminal;
  const all = [...declarations.declared.map(({ kind, name }) => ({ kind: kind.kind, name })), ...declarations.faults];
  const widthOf = (words: readonly (string | null)[]): number =>
    Math.max(1, ...words.map((word) => textWidth(safeLine(word ?? '-'))));
  const kindWidth = widthOf(prune === undefined ? all.map(({ kind }) => kind) : kindNames);
  const nameWidth = widthOf(all.map(({ name }) => name));
  const outcomes: Outcome[] = [];

  /** Whoever reads may leave: work that is half done for that would be told to nobody. */
  const unlessClosed = async (printing: () => Promise<void>): Promise<void> => {
    try {
      await printing();
    } catch (error) {
      if (!(error instanceof OutputClosedError)) throw error;
    }
  };

  const diffLine = (line: string): string => {
    if (line.startsWith('---') || line.startsWith('+++')) return style.bold(line);
    if (line.startsWith('@@')) return style.cyan(line);
    return line.startsWith('+') ? style.green(line) : line.startsWith('-') ? style.red(line) : line;
  };

  const noteFindings = ({ file, errors = [], warnings = [] }: Outcome): void => {
    for (const error of errors)
      terminal.note(findingLine(noteStyle, { severity: 'Error', file: file ?? '', ...error }));
    for (const warning of warnings)
      terminal.note(findingLine(noteStyle, { severity: 'Warning', file: file ?? '', ...warning }));
  };

  return {
    outcomes,
    async add(outcome: Outcome): Promise<void> {
      outcomes.push(outcome);
      if (globals.json) return;
      const { kind, name, action, version, file, line } = outcome;
      const what = style[actionStyles[action]](action.padEnd(9));
      const which = `${padText(safeLine(kind ?? '-'), kindWidth)}  ${padText(safeLine(name ?? '-'), nameWidth)}`;
      const where = version !== null ? `version ${version}` : file === null ? 'in no file' : placeOf(file, line);
      const isDry = dryRun === true ? style.dim('  (dry run)') : '';
      await unlessClosed(() => terminal.write(`${what}  ${which}  ${where}${isDry}\n`));
      noteFindings(outcome);
      if (diff !== true) return;
      for (const text of outcomeDiff(outcome, terminal.interactive))
        await unlessClosed(() => terminal.write(`${diffLine(text)}\n`));
    },
    async end(): Promise<void> {
      if (!globals.json) return;
      const told = outcomes.map(({ exitCode: _exitCode, change: _change, ...shown }, index) => {
        const outcome = outcomes[index];
        return diff === true && outcome !== undefined ? { ...shown, diff: outcomeDiff(outcome, false) } : shown;
      });
      await unlessClosed(() => session.print(told));
    },
  };
};

// As `git diff --exit-code`, with a number that no failure has.
const driftExitCode = 10;

const isChange = ({ action }: Outcome): boolean => ['created', 'updated', 'deleted'].includes(action);

/** What to know where not everything went well; null: all did. */
const remark = (outcomes: readonly Outcome[], isDryRun: boolean, declared: number): string | null => {
  const failed = outcomes.filter(({ action }) => action === 'failed').length;
  const written = outcomes.filter(isChange).length;
  const missing = declared - outcomes.filter(({ action }) => action !== 'deleted').length;
  if (isDryRun || (failed === 0 && missing <= 0)) return null;
  const reached = missing > 0 ? `, ${missing} not reached` : '';
  const stays = written === 0 ? '' : ' What was applied stays; applying the same files again goes on from there.';
  return `${written} applied, ${failed} failed${reached}.${stays}`;
};

const apply = async (session: Session, { options }: Invocation): Promise<number> => {
  const { file = [], dryRun = false, diff = false, exitCode: tellsDrift = false, prune } = options as ApplyOptions;
  if (tellsDrift && !dryRun)
    throw new AcpError('validation-failed', '--exit-code tells what a dry run would change: give --dry-run, too.');
  const [{ readDeclarations }, applying, pruning] = await Promise.all([
    import('../declarations/read-declarations.ts'),
    import('../declarations/apply-declarations.ts'),
    import('../declarations/prune-declarations.ts'),
  ]);
  const { terminal } = session;
  const declarations = await readDeclarations(file, terminal);
  const { declared, faults } = declarations;
  const report = await createReport(session, declarations, { ...(options as ApplyOptions), dryRun, diff });
  const exitCode = (): number => report.outcomes.find((outcome) => outcome.exitCode !== 0)?.exitCode ?? 0;
  for (const fault of faults) await report.add(applying.faultOutcome(fault));
  if (faults.length > 0) {
    if (!dryRun) await report.end();
    terminal.note(`Nothing ${dryRun ? 'would be' : 'was'} applied: these documents have to be mended first.`);
    if (!dryRun) return exitCode();
  }
  const owner = prune === undefined ? null : pruning.ownerToPrune(prune, declared);
  try {
    await session.connected(
      async ({ client }) => {
        const outcomes = dryRun
          ? applying.previewDeclarations(client, declarations)
          : applying.applyDeclarations(client, declarations);
        for await (const outcome of outcomes) await report.add(outcome);
        if (owner === null) return;
        if (exitCode() !== 0) terminal.note('Nothing was pruned: not everything could be applied.');
        else
          for await (const outcome of pruning.pruneDeclarations(client, owner, declared, dryRun))
            await report.add(outcome);
      },
      dryRun ? 'preview' : 'work',
    );
  } finally {
    await report.end();
    const text = remark(report.outcomes, dryRun, declared.length);
    if (text !== null) terminal.note(text);
  }
  const failure = exitCode();
  return failure === 0 && tellsDrift && report.outcomes.some(isChange) ? driftExitCode : failure;
};

/** `acp apply`: brings the service into the state that files declare, any number of times. */
export const registerApply = (host: CommandHost): void => {
  const command = host.program
    .command('apply')
    .description('bring agents, skills, schedules, webhooks, triggers and rules into the state that YAML files declare')
    .option(
      '-f, --file <path>',
      'file, folder, or - for the standard input; a file can hold many documents (repeatable)',
      collect,
    )
    .option('--dry-run', 'show the changes, write nothing')
    .option('--diff', 'show the changes as a unified diff')
    .option('--exit-code', `with --dry-run: exit code ${driftExitCode} if something would change`)
    .option(
      '--prune [owner]',
      'delete objects with this owner label that are in no file; default: the label of the files',
    );
  covers(
    command,
    'agents.validate',
    'agents.create',
    'agents.save',
    'agents.remove',
    'skills.save',
    'skills.remove',
    'schedules.save',
    'schedules.remove',
    'webhooks.save',
    'webhooks.remove',
    'triggers.save',
    'triggers.remove',
    'mcpServers.save',
    'mcpServers.remove',
    'quotas.save',
    'approvalRules.create',
    'retention.save',
    'egressPolicies.save',
  ).action(host.act(apply));
};
