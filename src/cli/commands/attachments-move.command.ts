import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { CommandHost } from '../command-host.ts';
import { noteLog } from '../output/note-log.ts';
import { notePlain, storeNote } from '../output/store-note.ts';
import { readConfig } from '../read-config.ts';
import type { Session } from '../session.ts';

const findingsExitCode = 1;
const progressMs = 10_000;
const targets = { database: 'Database', folder: 'Folder', s3: 'S3' } as const;

const files = (count: number): string => (count === 1 ? '1 file' : `${count} files`);

const targetOf = (name: string) => {
  const target = targets[name.toLowerCase() as keyof typeof targets];
  if (target !== undefined) return target;
  throw new AcpError('validation-failed', `There is no place "${name}"; there are ${Object.keys(targets).join(', ')}.`);
};

const showProgress = ({ terminal }: Session) => {
  let shown = Date.now();
  return (contents: number): void => {
    if (!terminal.interactive || Date.now() - shown < progressMs) return;
    shown = Date.now();
    terminal.note(`${files(contents)} so far`);
  };
};

const move = async (session: Session, to: string, removeSource: boolean): Promise<number> => {
  const { terminal, cwd } = session;
  const target = targetOf(to);
  const [{ moveAttachments }, { storeOptions }, { storeName }, { tellOperatorsAct }, { newId }, config] =
    await Promise.all([
      import('../../db/move-attachments.ts'),
      import('../../db/store-options.ts'),
      import('../../db/store-place.ts'),
      import('../../features/audit/index.ts'),
      import('../../core/ids.ts'),
      readConfig(session),
    ]);
  const store = storeOptions(config.values, cwd);
  notePlain(session, storeNote(storeName(store)));
  const report = await moveAttachments({
    ...store,
    ...{ to: target, removeSource, now: Date.now, log: noteLog(terminal) },
    ...{ signal: terminal.closed, progress: showProgress(session) },
    begins: (storage, { to: id, ...after }) =>
      tellOperatorsAct(
        storage,
        { tenantId: config.values.Service.DefaultTenantId, actor: null, log: noteLog(terminal), now: Date.now, newId },
        { action: 'attachments.move', id, after },
      ),
  });
  await session.print(report, ({ style }) => {
    const found = report.findings.map((finding) => `${style.red('✗')} ${finding}\n`).join('');
    const copied = `${files(report.copied)} copied now, ${report.copiedBytes} bytes`;
    const removed = report.removed > 0 ? `${files(report.removed)} removed from where they were\n` : '';
    return `${report.to}  ${files(report.contents)} there, ${copied}\n${removed}${found}`;
  });
  if (!report.complete) terminal.note('It was stopped; call it again to go on.');
  return report.findings.length === 0 && report.complete ? 0 : findingsExitCode;
};

/** `acp attachments move`: the bytes go to another place, on the store directly. */
export const registerAttachmentsMove = (attachments: Command, host: CommandHost): void => {
  attachments
    .command('move')
    .description(
      'copy the bytes of all attachments to another location and compare them there, even while the service runs; exit code 1 if something is incomplete',
    )
    .requiredOption('--to <place>', 'location as configured in Service:Attachments: database, folder or s3')
    .option(
      '--remove-source',
      'remove them from the old locations once all are copied; Service:Attachments:Store must be the new location',
    )
    .addHelpText(
      'after',
      '\nThe command can be stopped at any time; a repeat continues it. Attachments are read from every configured location,\nnot only from Service:Attachments:Store.\n',
    )
    .action(host.act((session, { options }) => move(session, String(options['to']), options['removeSource'] === true)));
};
