import type { Command } from 'commander';
import { type CommandHost, commandGroup } from '../command-host.ts';
import { groupDescriptions } from '../groups.ts';
import { noteLog } from '../output/note-log.ts';
import { jsonText, printReply } from '../output/print-reply.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';
import { registerDbReencrypt } from './db-reencrypt.command.ts';

const findingsExitCode = 1;

const openMaintenance = async (session: Session) => {
  const [maintenance, { storeOptions }, config] = await Promise.all([
    import('../../db/maintenance.ts'),
    import('../../db/store-options.ts'),
    readConfig(session),
  ]);
  return { maintenance, options: storeOptions(config.values, session.cwd) };
};

const migrate = async (session: Session): Promise<undefined> => {
  const { terminal, globals } = session;
  const { maintenance, options } = await openMaintenance(session);
  const log = noteLog(terminal);
  const applied = await maintenance.migrateStore({ ...options, now: Date.now, log });
  if (globals.json) return printReply(terminal, { applied }, { json: true });
  await terminal.write(
    applied.length === 0 ? 'The store is up to date.\n' : applied.map((name) => `applied  ${name}\n`).join(''),
  );
  return undefined;
};

const status = async (session: Session): Promise<undefined> => {
  const { maintenance, options } = await openMaintenance(session);
  return printReply(session.terminal, await maintenance.storeStatus(options), { json: session.globals.json });
};

const compact = async (session: Session): Promise<undefined> => {
  const { terminal, globals } = session;
  const { maintenance, options } = await openMaintenance(session);
  const log = noteLog(terminal);
  const report = await maintenance.compactStore({ ...options, now: Date.now, log });
  const { path, bytesBefore, bytesAfter } = report;
  if (globals.json) return printReply(terminal, report, { json: true });
  await terminal.write(`${path}  ${bytesAfter} bytes, ${bytesBefore - bytesAfter} given back\n`);
  return undefined;
};

/** One line for each; the exit code is that of a check. */
const writeFindings = async ({ terminal }: Session, findings: readonly string[]): Promise<void> =>
  terminal.write(findings.map((finding) => `${terminal.style.red('✗')} ${finding}\n`).join(''));

const backup = async (session: Session, to: string, force: boolean): Promise<number> => {
  const { terminal, globals } = session;
  const { maintenance, options } = await openMaintenance(session);
  const report = await maintenance.backupStore(options, to, { force });
  const { path, totalBytes, attachments, findings } = report;
  if (globals.json) await terminal.writeJson(jsonText(report));
  else {
    await terminal.write(`${path}  ${totalBytes} bytes\n`);
    if (attachments.files > 0)
      await terminal.write(`${attachments.path}  ${attachments.files} files, ${attachments.totalBytes} bytes\n`);
    await writeFindings(session, findings);
  }
  return findings.length === 0 ? 0 : findingsExitCode;
};

const check = async (session: Session): Promise<number> => {
  const { terminal, globals } = session;
  const { maintenance, options } = await openMaintenance(session);
  const report = await maintenance.checkStore(options);
  if (globals.json) await terminal.writeJson(jsonText(report));
  else if (report.findings.length === 0) await terminal.write(`${report.path} is sound.\n`);
  else await writeFindings(session, report.findings);
  if (!globals.json) for (const note of report.notes) terminal.note(note);
  return report.findings.length === 0 ? 0 : findingsExitCode;
};

/** `acp db`: the store's file, worked on directly. */
export const registerDb = (host: CommandHost): Command => {
  const db = commandGroup(host.program, 'db', groupDescriptions['db'] ?? '');
  db.command('migrate')
    .description('apply the migrations that are pending; no server may be running')
    .action(host.act(migrate));
  db.command('status').description('show the store, its migrations and who serves it').action(host.act(status));
  db.command('backup')
    .description('copy the store to a file and its attachments to a folder beside it, also while it is served')
    .argument('<file>')
    .option('--force', 'replace the file when it exists')
    .action(host.act((session, { args, options }) => backup(session, args[0] as string, options['force'] === true)));
  db.command('compact')
    .description('give the space of deleted rows back to the file system; no server may be running')
    .action(host.act(compact));
  db.command('check')
    .description(
      'check the store, the logs of all runs and the files of attachments; exit code 1 when something is wrong',
    )
    .action(host.act(check));
  registerDbReencrypt(db, host);
  return db;
};
