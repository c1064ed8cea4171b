import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { MoveReport, TellMove } from '../../db/move/move-store.ts';
import type { CommandHost } from '../command-host.ts';
import { leaveOnInterrupt } from '../interrupt.ts';
import { noteLog } from '../output/note-log.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

const findingsExitCode = 1;
const progressMs = 5000;

const rowsText = (count: number): string => (count === 1 ? '1 row' : `${count} rows`);

const showProgress = ({ terminal }: Session): TellMove => {
  let shown = Date.now();
  return (work, table, rows, of) => {
    if (Date.now() - shown < progressMs) return;
    shown = Date.now();
    terminal.note(`${table}: ${rows} of ${rowsText(of)} ${work}`);
  };
};

const summary = (report: MoveReport): string => {
  const { from, to, dryRun, resumed, rows, auditTrails, attachments } = report;
  const files =
    attachments.files === 0
      ? ''
      : ` and ${attachments.files === 1 ? '1 file' : `${attachments.files} files`} of attachments`;
  const trails = auditTrails.length === 1 ? '1 audit trail' : `${auditTrails.length} audit trails`;
  if (dryRun)
    return `${rowsText(rows)}, ${trails}${files} of ${from} would be ${resumed ? 'completed in' : 'moved to'} ${to}.`;
  return `${from} is now in ${to}: ${rowsText(rows)}, ${trails}${files}, the same at both ends.`;
};

const writeReport = async ({ terminal, print }: Session, report: MoveReport): Promise<void> => {
  const filled = report.tables.filter(({ rows }) => rows > 0);
  if (filled.length > 0) await print(filled, report.dryRun ? ['table', 'rows'] : ['table', 'rows', 'hash']);
  for (const finding of report.findings) await terminal.write(`${terminal.style.red('✗')} ${finding}\n`);
  await terminal.write(`${summary(report)}\n`);
  if (report.attachments.location !== null) terminal.note(`The attachments lie in ${report.attachments.location}.`);
  if (report.signingKey)
    terminal.note(
      report.dryRun
        ? 'The key that signs exports of the audit trail would go with it.'
        : 'The key that signs exports of the audit trail went with it.',
    );
};

interface Options {
  readonly from?: string;
  readonly to?: string;
  readonly dryRun?: boolean;
  readonly hold?: boolean;
  readonly release?: boolean;
}

const release = async (session: Session, from: string | undefined): Promise<number> => {
  const [{ releaseStore }, { storeOptions, storeOptionsAt }, { values }] = await Promise.all([
    import('../../db/move/move-store.ts'),
    import('../../db/store-options.ts'),
    readConfig(session),
  ]);
  const options = from === undefined ? storeOptions(values, session.cwd) : storeOptionsAt(values, session.cwd, from);
  const report = await releaseStore(options);
  await session.print(report, () =>
    report.released === null
      ? `No move holds ${report.store}.\n`
      : `${report.store} ${report.released}, and can be used again. Processes that answer reads only have to be started again.\n`,
  );
  return 0;
};

const move = async (
  session: Session,
  { from, to, dryRun = false, hold = false, ...options }: Options,
): Promise<number> => {
  if (options.release === true) return release(session, from);
  if (from === undefined && to === undefined)
    throw new AcpError(
      'validation-failed',
      'Say where the configured store is to go with --to, or what comes there with --from.',
    );
  const { terminal, globals, cwd } = session;
  const [{ moveStore }, { storeOptions, storeOptionsAt }, { signingKeyMove, verifyTrails }, { values }] =
    await Promise.all([
      import('../../db/move/move-store.ts'),
      import('../../db/store-options.ts'),
      import('../../features/audit/index.ts'),
      readConfig(session),
    ]);
  const storeAt = (place: string | undefined) =>
    place === undefined ? storeOptions(values, cwd) : storeOptionsAt(values, cwd, place);
  using interruption = leaveOnInterrupt();
  const report = await moveStore({
    from: storeAt(from),
    to: { ...storeAt(to), now: Date.now, log: noteLog(terminal) },
    dryRun,
    hold,
    signal: interruption.signal,
    waits: (processes) =>
      terminal.note(
        `${processes === 1 ? '1 process has' : `${processes} processes have`} yet to end its runs and answer reads only`,
      ),
    tell: showProgress(session),
    verifyTrails,
    signingKey: signingKeyMove,
  }).catch((error: unknown) => {
    if (interruption.exitCode === null || !interruption.signal.aborted) throw error;
    terminal.note('It was stopped; call it again to go on. Processes that answer reads only have to be started again.');
    return interruption.exitCode;
  });
  if (typeof report === 'number') return report;
  if (globals.json) await session.print(report);
  else await writeReport(session, report);
  return report.findings.length === 0 ? 0 : findingsExitCode;
};

/** `acp db move`: the whole store, to another file or another kind of store. */
export const registerDbMove = (db: Command, host: CommandHost): void => {
  db.command('move')
    .description(
      'copy the complete store to another location and verify it there; the source does not change; exit code 1 on differences',
    )
    .option('--to <place>', 'path of a file, or postgres://…; default: the configured store')
    .option('--from <place>', 'path of a file, or postgres://…; default: the configured store')
    .option(
      '--hold',
      'make the processes that serve the source end their runs and serve only reads until their restart',
    )
    .option('--release', 'release the hold that an aborted move left at the configured store, or --from')
    .option('--dry-run', 'check both stores, read everything and write nothing')
    .addHelpText('after', '\nThe command can be stopped at any time; a repeat continues it.\n')
    .action(host.act((session, { options }) => move(session, options)));
};
