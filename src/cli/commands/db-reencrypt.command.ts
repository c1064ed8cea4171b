import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { FormerKey, ReencryptReport } from '../../db/protection/reencrypt.ts';
import type { CommandHost } from '../command-host.ts';
import { noteLog } from '../output/note-log.ts';
import { notePlain, storeNote } from '../output/store-note.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

const leftExitCode = 1;
const progressMs = 10_000;

const columns = ['table', 'rows', 'plain', 'former', 'rewritten', 'unreadable', 'orphaned'];

const rows = (count: number): string => (count === 1 ? '1 row' : `${count} rows`);

const keyLine = ({ keyId, rows: count, configured }: FormerKey): string => {
  const where = configured ? '' : ', which Service:AtRest:Keys does not have';
  if (count > 0) return `Under key "${keyId}"${where}: ${rows(count)}.`;
  return `Nothing is under key "${keyId}" any more. Only older backups need it in Service:AtRest:Keys.`;
};

const leftLine = ({ left, dryRun, activeKeyId }: ReencryptReport): string => {
  const are = left === 1 ? '1 row is' : `${left} rows are`;
  if (activeKeyId === null) return left === 0 ? 'Nothing is encrypted.' : `${are} ${dryRun ? '' : 'still '}encrypted.`;
  if (left === 0) return 'Everything is under the active key.';
  return `${are} ${dryRun ? '' : 'still '}not under the active key.`;
};

const writeReport = async ({ terminal, print }: Session, report: ReencryptReport): Promise<void> => {
  await print(report.tables, columns);
  await terminal.write(report.formerKeys.map((key) => `${keyLine(key)}\n`).join(''));
  await terminal.write(`${leftLine(report)}\n`);
  const orphaned = report.tables.reduce((sum, table) => sum + table.orphaned, 0);
  if (orphaned > 0)
    terminal.note(`${rows(orphaned)} of what is deleted already: the service removes them soon after it starts.`);
  if (!report.dryRun && !report.compacted)
    terminal.note(
      report.provider === 'Sqlite'
        ? 'What was deleted or replaced may still stand in free parts of the file: `acp db reencrypt --compact` writes the file anew without it.'
        : 'What was deleted or replaced may still stand in the tables of the server until VACUUM has run there, and in its backups: VACUUM FULL writes a table anew without it.',
    );
};

const showProgress = ({ terminal }: Session) => {
  let shown = Date.now();
  return (table: string, count: number): void => {
    if (Date.now() - shown < progressMs) return;
    shown = Date.now();
    terminal.note(`${table}: ${rows(count)} so far`);
  };
};

interface Options {
  readonly dryRun: boolean;
  readonly compact: boolean;
  readonly decrypt: boolean;
}

const reencrypt = async (session: Session, options: Options): Promise<number> => {
  const { terminal, globals, cwd } = session;
  if (options.dryRun && options.compact)
    throw new AcpError(
      'validation-failed',
      '--dry-run changes nothing, and --compact writes the file anew: give one of them.',
    );
  const [{ reencryptStore }, { storeOptions }, { storeName }, config] = await Promise.all([
    import('../../db/protection/reencrypt.ts'),
    import('../../db/store-options.ts'),
    import('../../db/store-place.ts'),
    readConfig(session),
  ]);
  const log = noteLog(terminal);
  const progress = showProgress(session);
  const store = storeOptions(config.values, cwd);
  notePlain(session, storeNote(storeName(store), options.dryRun ? 'reads' : 'works on'));
  const report = await reencryptStore({ ...store, ...options, now: Date.now, log, progress });
  if (globals.json) await session.print(report);
  else await writeReport(session, report);
  return report.left === 0 ? 0 : leftExitCode;
};

/** `acp db reencrypt`: what is plain or under a former key is written anew under the active one. */
export const registerDbReencrypt = (db: Command, host: CommandHost): void => {
  db.command('reencrypt')
    .description(
      'encrypt data in plain text or under a former key with the active key; with a store in a file, no server may run; exit code 1 if rows are left',
    )
    .option('--dry-run', 'only count, by table and key, even while a server runs')
    .option('--compact', 'rewrite the file at the end without deleted data; needs its size in free disk space')
    .option('--decrypt', 'decrypt encrypted data, if no key is active')
    .addHelpText('after', '\nThe command can be stopped at any time; a repeat continues it.\n')
    .action(
      host.act((session, { options }) =>
        reencrypt(session, {
          dryRun: options['dryRun'] === true,
          compact: options['compact'] === true,
          decrypt: options['decrypt'] === true,
        }),
      ),
    );
};
