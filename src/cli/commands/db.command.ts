import type { CheckTrails } from '../../db/server-maintenance.ts';
import type { Style } from '../../text/style.ts';
import { type CommandHost, commandGroup } from '../command-host.ts';
import { noteLog } from '../output/note-log.ts';
import { notePlain, storeNote } from '../output/store-note.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';
import { registerDbMove } from './db-move.command.ts';
import { registerDbReencrypt } from './db-reencrypt.command.ts';

const findingsExitCode = 1;

const openMaintenance = async (session: Session) => {
  const [maintenance, onServer, { storeOptions }, config] = await Promise.all([
    import('../../db/maintenance.ts'),
    import('../../db/server-maintenance.ts'),
    import('../../db/store-options.ts'),
    readConfig(session),
  ]);
  const options = storeOptions(config.values, session.cwd);
  return { maintenance, onServer, options, server: onServer.serverPlace(options) };
};

const migrate = async (session: Session): Promise<void> => {
  const [{ maintenance, options }, { storeName }] = await Promise.all([
    openMaintenance(session),
    import('../../db/store-place.ts'),
  ]);
  notePlain(session, storeNote(storeName(options)));
  const log = noteLog(session.terminal);
  const applied = await maintenance.migrateStore({ ...options, now: Date.now, log });
  await session.print({ applied }, () =>
    applied.length === 0 ? 'The store is up to date.\n' : applied.map((name) => `applied  ${name}\n`).join(''),
  );
};

const status = async (session: Session): Promise<void> => {
  const { maintenance, onServer, options, server } = await openMaintenance(session);
  await session.print(
    server === null ? await maintenance.storeStatus(options) : await onServer.serverStatus(options, server),
  );
};

const compact = async (session: Session): Promise<void> => {
  const [{ maintenance, onServer, options, server }, { storeName }] = await Promise.all([
    openMaintenance(session),
    import('../../db/store-place.ts'),
  ]);
  if (server !== null) return onServer.refuseServerCompact(server);
  notePlain(session, storeNote(storeName(options)));
  const log = noteLog(session.terminal);
  const report = await maintenance.compactStore({ ...options, now: Date.now, log });
  const { path, bytesBefore, bytesAfter } = report;
  await session.print(report, () => `${path}  ${bytesAfter} bytes, ${bytesBefore - bytesAfter} given back\n`);
};

/** One line for each; the exit code is that of a check. */
const findingLines = (findings: readonly string[], style: Style): string =>
  findings.map((finding) => `${style.red('✗')} ${finding}\n`).join('');

const backup = async (session: Session, to: string, force: boolean): Promise<number> => {
  const { maintenance, onServer, options, server } = await openMaintenance(session);
  if (server !== null) return onServer.refuseServerBackup(server, to);
  const report = await maintenance.backupStore(options, to, { force });
  const { path, totalBytes, attachments, notCopied, findings } = report;
  const files =
    attachments.files > 0 ? `${attachments.path}  ${attachments.files} files, ${attachments.totalBytes} bytes\n` : '';
  await session.print(report, ({ style }) => `${path}  ${totalBytes} bytes\n${files}${findingLines(findings, style)}`);
  if (!session.globals.json)
    for (const { keptIn, files: count, totalBytes: bytes } of notCopied)
      session.terminal.note(
        `Not copied: ${count} files, ${bytes} bytes in ${keptIn}. Keep a copy of that place, too, made after this one.`,
      );
  return findings.length === 0 ? 0 : findingsExitCode;
};

const trailFaults = async (): Promise<CheckTrails> => {
  const { verifyTrails } = await import('../../features/audit/index.ts');
  return async (storage) =>
    (await verifyTrails(storage))
      .filter(({ status }) => status !== 'Valid')
      .map(
        ({ tenantId, status, firstFailingEntryId }) =>
          `The audit trail of tenant ${tenantId} has a fault (${status}) at entry ${firstFailingEntryId ?? 'none'}.`,
      );
};

const check = async (session: Session): Promise<number> => {
  const { terminal, globals } = session;
  const { maintenance, onServer, options, server } = await openMaintenance(session);
  const report =
    server === null
      ? await maintenance.checkStore(options)
      : await onServer.checkOnServer(options, server, await trailFaults());
  const { findings, notes } = report;
  const name = 'path' in report ? report.path : `${report.address}, schema ${report.schema}`;
  await session.print(report, ({ style }) =>
    findings.length === 0 ? `${name} is sound.\n` : findingLines(findings, style),
  );
  if (!globals.json) for (const note of notes) terminal.note(note);
  return findings.length === 0 ? 0 : findingsExitCode;
};

/** `acp db`: the store's file, worked on directly. */
export const registerDb = (host: CommandHost): void => {
  const db = commandGroup(host.program, 'db');
  db.command('migrate')
    .description('apply pending migrations; with a store in a file, no server may run')
    .action(host.act(migrate));
  db.command('status')
    .description('show the store, its migrations, and the process that serves it or the state of the database server')
    .action(host.act(status));
  db.command('backup')
    .description(
      'copy a store in a file to another file and its attachments to a folder next to it, even while a server runs',
    )
    .argument('<file>')
    .option('--force', 'replace an existing file')
    .action(host.act((session, { args, options }) => backup(session, args[0] as string, options['force'] === true)));
  db.command('compact')
    .description('return the space of deleted rows in a store file to the file system; no server may run')
    .action(host.act(compact));
  db.command('check')
    .description('check the store, the logs of all runs and the bytes of attachments; exit code 1 if a check fails')
    .action(host.act(check));
  registerDbMove(db, host);
  registerDbReencrypt(db, host);
};
