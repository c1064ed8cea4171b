import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { AcpError } from '../../contract/errors.ts';
import type { ExportVerification } from '../../features/audit/index.ts';
import { safeLine } from '../../text/text-width.ts';
import { type CommandHost, covers, type Invocation } from '../command-host.ts';
import { writeWhole } from '../files/write-whole.ts';
import { jsonText } from '../output/print-reply.ts';
import type { Session } from '../session.ts';

// A fault is a finding, not a failure of the command: gates tell the two apart.
const faultExitCode = 1;
// As for every input that cannot be read as what it should be.
const unreadableExitCode = 2;

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : 'unknown');

const range = ({ options }: Invocation): { after?: string; before?: string } => ({
  ...(options['after'] === undefined ? {} : { after: String(options['after']) }),
  ...(options['before'] === undefined ? {} : { before: String(options['before']) }),
});

const exportTrail = async (session: Session, invocation: Invocation): Promise<undefined> => {
  const { terminal, cwd } = session;
  const path = await session.connected(async ({ client }) => {
    const reply = await client.audit.export({ query: range(invocation), signal: terminal.closed });
    if (reply.bytes === undefined) throw new AcpError('cannot-connect', 'The service did not answer with a file.');
    return writeWhole(String(invocation.options['output']), cwd, reply.bytes);
  });
  // What arrived is checked at once: a trail with a fault is exported, too, and its reader should know.
  const found = await verifyFile(path, { publicKey: null, continues: null });
  terminal.note(`Wrote ${path}, signed with the key ${found.fingerprint ?? ''}.`);
  if (found.status !== 'Valid') terminal.note(found.message);
  return undefined;
};

const verifyFile = async (
  path: string,
  expected: { readonly publicKey: string | null; readonly continues: ExportVerification['last'] },
): Promise<ExportVerification> => {
  const { verifyExport } = await import('../../features/audit/index.ts');
  try {
    return await verifyExport(createReadStream(path), expected);
  } catch (cause) {
    throw new AcpError('validation-failed', `${path} cannot be read (${codeOf(cause)}).`, { cause });
  }
};

const keyPattern = /^(SHA256:)?[A-Za-z0-9+/]{43}=?$/;

/** A fingerprint, the key in base64, or a file with one of them or with the key in PEM. */
const readPublicKey = async (given: unknown, cwd: string): Promise<string | null> => {
  if (given === undefined) return null;
  const text = String(given);
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
  given: unknown,
  publicKey: string | null,
  cwd: string,
): Promise<ExportVerification['last']> => {
  if (given === undefined) return null;
  const path = resolve(cwd, String(given));
  const earlier = await verifyFile(path, { publicKey, continues: null });
  if (earlier.status !== 'Valid') throw new AcpError('validation-failed', `${path}: ${earlier.message}`);
  return earlier.last;
};

const reportFile = async ({ terminal, globals }: Session, found: ExportVerification): Promise<number> => {
  const { last: _last, ...shown } = found;
  const isValid = found.status === 'Valid';
  if (globals.json) await terminal.writeJson(jsonText(shown));
  else {
    const mark = isValid ? terminal.style.green('✓') : terminal.style.red('✗');
    await terminal.write(`${mark} ${found.status}: ${safeLine(found.message)}\n`);
    if (found.tenantId !== null)
      await terminal.write(
        `  tenant ${safeLine(found.tenantId)}, ${found.entriesChecked} entries, exported ${safeLine(found.createdAt ?? '')}\n  key ${found.fingerprint ?? ''}\n`,
      );
    if (isValid && !found.pinned)
      terminal.note('The key is the one that the file names: give the one you know with --public-key.');
  }
  if (isValid) return 0;
  return found.status === 'Malformed' || found.status === 'UnknownVersion' ? unreadableExitCode : faultExitCode;
};

const verify = async (session: Session, invocation: Invocation): Promise<number> => {
  const { terminal, globals, cwd } = session;
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
    const isValid = body.status === 'Valid';
    if (globals.json) await terminal.writeJson(jsonText(body));
    else {
      const mark = isValid ? terminal.style.green('✓') : terminal.style.red('✗');
      const where = body.firstFailingEntryId === null ? '' : `, at entry ${body.firstFailingEntryId}`;
      await terminal.write(`${mark} ${body.status}: ${body.entriesChecked} entries checked${where}\n`);
    }
    return isValid ? 0 : faultExitCode;
  });
};

/** `acp audit export|verify`; reading is made from the operation table. */
export const registerAudit = (audit: Command, host: CommandHost): void => {
  const exporting = audit
    .command('export')
    .description('write the audit trail to a signed file that is checked anywhere')
    .requiredOption('-o, --output <file>', 'file to write, such as audit.jsonl')
    .option('--after <time>', 'inclusive')
    .option('--before <time>', 'exclusive');
  covers(exporting, 'audit.export').action(host.act(exportTrail));
  const verifying = audit
    .command('verify')
    .description(
      'check the chain of the trail, or an exported file without any service; exit code 1 when it has a fault',
    )
    .argument('[file]', 'an export; without it the trail of the service is checked')
    .option('--after <time>', 'inclusive; not with a file')
    .option('--before <time>', 'exclusive; not with a file')
    .option('--public-key <key>', 'key that must have signed the file: its fingerprint, base64, or a file with it')
    .option('--continues <file>', 'an earlier export, whose last entry the file must still hold');
  covers(verifying, 'audit.verify').action(host.act(verify));
};
