import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { ExportVerification } from '../../features/audit/index.ts';
import type { Style } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { faultCode } from '../files/file-fault.ts';
import { writeWhole } from '../files/write-whole.ts';
import type { Session } from '../session.ts';

// A fault is a finding, not a failure of the command: gates tell the two apart.
const faultExitCode = 1;
// As for every input that cannot be read as what it should be.
const unreadableExitCode = 2;

const range = ({ options }: Invocation): { after?: string; before?: string } => ({
  ...(options['after'] === undefined ? {} : { after: String(options['after']) }),
  ...(options['before'] === undefined ? {} : { before: String(options['before']) }),
});

const exportTrail = async (session: Session, invocation: Invocation): Promise<void> => {
  const { terminal, cwd } = session;
  const path = await session.connected(async ({ client }) => {
    const reply = await client.audit.export({ query: range(invocation), signal: terminal.closed });
    if (reply.bytes === undefined) throw new AcpError('cannot-connect', 'The service did not answer with a file.');
    return writeWhole(String(invocation.options['output']), cwd, reply.bytes);
  });
  // What arrived is checked at once: a trail with a fault is exported, too, and its reader should know.
  const { status, message, fingerprint } = await verifyFile(path, { publicKey: null, continues: null });
  terminal.note(`Wrote ${path}, signed with the key ${fingerprint ?? ''}.`);
  if (status !== 'Valid') terminal.note(message);
};

const verifyFile = async (
  path: string,
  expected: { readonly publicKey: string | null; readonly continues: ExportVerification['last'] },
): Promise<ExportVerification> => {
  const { verifyExport } = await import('../../features/audit/index.ts');
  try {
    return await verifyExport(createReadStream(path), expected);
  } catch (cause) {
    throw new AcpError('validation-failed', `${path} cannot be read (${faultCode(cause)}).`, { cause });
  }
};

const keyPattern = /^(SHA256:)?[A-Za-z0-9+/]{43}=?$/;

/** A fingerprint, the key in base64, or a file with one of them or with the key in PEM. */
const readPublicKey = async (option: unknown, cwd: string): Promise<string | null> => {
  if (option === undefined) return null;
  const text = String(option);
  if (keyPattern.test(text)) return text;
  let content: string;
  try {
    content = (await readFile(resolve(cwd, text), 'utf8')).trim();
  } catch (cause) {
    throw new AcpError('validation-failed', `--public-key takes a key, a fingerprint or a file, not "${text}".`, {
      cause,
    });
  }
  if (keyPattern.test(content)) return content;
  try {
    const [{ createPublicKey }, { rawPublicKey }] = await Promise.all([
      import('node:crypto'),
      import('../../features/audit/index.ts'),
    ]);
    const key = createPublicKey(content);
    if (key.asymmetricKeyType === 'ed25519') return rawPublicKey(key).toString('base64');
  } catch (cause) {
    throw new AcpError('validation-failed', `${text} holds no public key.`, { cause });
  }
  throw new AcpError('validation-failed', `${text} holds no Ed25519 key.`);
};

/** What an earlier export ended with, after that one has passed the same check. */
const readContinued = async (
  file: unknown,
  publicKey: string | null,
  cwd: string,
): Promise<ExportVerification['last']> => {
  if (file === undefined) return null;
  const path = resolve(cwd, String(file));
  const earlier = await verifyFile(path, { publicKey, continues: null });
  if (earlier.status !== 'Valid') throw new AcpError('validation-failed', `${path}: ${earlier.message}`);
  return earlier.last;
};

const markOf = (isValid: boolean, style: Style): string => (isValid ? style.green('✓') : style.red('✗'));

const fileText = (report: ExportVerification, style: Style): string => {
  const { status, message, tenantId, entriesChecked, createdAt, fingerprint } = report;
  const verdict = `${markOf(status === 'Valid', style)} ${status}: ${safeLine(message)}\n`;
  if (tenantId === null) return verdict;
  const origin = `tenant ${safeLine(tenantId)}, ${entriesChecked} entries, exported ${safeLine(createdAt ?? '')}`;
  return `${verdict}  ${origin}\n  key ${fingerprint ?? ''}\n`;
};

const reportFile = async ({ terminal, globals, print }: Session, report: ExportVerification): Promise<number> => {
  const { last: _last, ...shown } = report;
  await print(shown, ({ style }) => fileText(report, style));
  if (report.status === 'Valid') {
    if (!report.pinned && !globals.json)
      terminal.note('The key is the one that the file names: give the one you know with --public-key.');
    return 0;
  }
  return report.status === 'Malformed' || report.status === 'UnknownVersion' ? unreadableExitCode : faultExitCode;
};

const verify = async (session: Session, invocation: Invocation): Promise<number> => {
  const { terminal, print, cwd } = session;
  const [file] = invocation.args as [string | undefined];
  if (file !== undefined) {
    const publicKey = await readPublicKey(invocation.options['publicKey'], cwd);
    const continues = await readContinued(invocation.options['continues'], publicKey, cwd);
    return reportFile(session, await verifyFile(resolve(cwd, file), { publicKey, continues }));
  }
  for (const name of ['publicKey', 'continues'])
    if (invocation.options[name] !== undefined)
      throw new AcpError('validation-failed', 'A key and an earlier export go with the file of an export.');
  return session.connected(async ({ client }) => {
    const { body } = await client.audit.verify({ query: range(invocation), signal: terminal.closed });
    const { status, entriesChecked, firstFailingEntryId } = body;
    const isValid = status === 'Valid';
    const where = firstFailingEntryId === null ? '' : `, at entry ${firstFailingEntryId}`;
    await print(
      body,
      ({ style }) => `${markOf(isValid, style)} ${status}: ${entriesChecked} entries checked${where}\n`,
    );
    return isValid ? 0 : faultExitCode;
  });
};

/** `acp audit export|verify`; reading is made from the operation table. */
export const registerAudit = (audit: Command, host: CommandHost): void => {
  const exporting = audit
    .command('export')
    .description('write the audit trail to a signed file that can be verified on any machine')
    .requiredOption('-o, --output <file>', 'file to write, such as audit.jsonl')
    .option('--after <time>', 'inclusive')
    .option('--before <time>', 'exclusive');
  covers(exporting, 'audit.export').action(host.act(exportTrail));
  const verifying = audit
    .command('verify')
    .description('verify the chain of the trail, or an exported file without a service; exit code 1 on a fault')
    .argument('[file]', 'exported file; default: the trail of the service')
    .option('--after <time>', 'inclusive; not with a file')
    .option('--before <time>', 'exclusive; not with a file')
    .option('--public-key <key>', 'key that must have signed the file: fingerprint, base64, or a file with the key')
    .option('--continues <file>', 'earlier export whose last entry the file must still contain');
  covers(verifying, 'audit.verify').action(host.act(verify));
};
