import type { AuditChainVerification, ChainStatus } from './audit.schema.ts';
import { checkChain } from './chain-check.rules.ts';
import { type ExportHeader, fingerprintOf, isSignedBy } from './export-format.ts';
import { ExportFault, type ExportFaultKind, readParts, type SealedEnd, signerOf } from './export-parts.ts';

/** What is asked of the file beyond being whole. */
export interface ExpectedExport {
  /** The only key that may have signed it, in base64, or its fingerprint; null: the file's own. */
  readonly publicKey: string | null;
  /** An entry that it has to hold, as an earlier export ended. */
  readonly continues: { readonly id: string; readonly hash: string } | null;
}

/**
 * `Altered`: the signature does not fit the file; `Truncated`: it has no end; `Malformed`: it is no export, or its lines
 * are none; `UnknownVersion`; `OtherKey`: signed by another key than the expected; `Rewritten`: what an earlier export
 * ended with is not in it.
 */
export type ExportStatus = ChainStatus | ExportFaultKind;

export interface ExportVerification {
  readonly status: ExportStatus;
  /** One sentence for people. */
  readonly message: string;
  readonly tenantId: string | null;
  readonly createdAt: string | null;
  readonly after: string | null;
  readonly before: string | null;
  readonly fingerprint: string | null;
  /** True when the key was expected by the caller, and not only by the file itself. */
  readonly pinned: boolean;
  readonly entriesChecked: number;
  readonly firstFailingEntryId: string | null;
  /** The newest entry of a valid file. */
  readonly last: { readonly id: string; readonly hash: string } | null;
}

/** Whether a key, in base64, is the one that was given in base64 or by its fingerprint. */
const isExpected = (publicKey: string, expected: string): boolean =>
  expected.startsWith('SHA256:')
    ? fingerprintOf(publicKey) === expected
    : Buffer.from(publicKey, 'base64').equals(Buffer.from(expected, 'base64'));

const counted = (entries: number): string => (entries === 1 ? '1 entry' : `${entries} entries`);

const chainMessages = {
  Broken: 'does not have the hash of its content',
  Gap: 'does not follow the entry before it, or is not the last one',
};

/**
 * Checks a signed export, without a service or a store: the signature over every byte, then the hash of each entry and
 * their chain. Reads it once, line by line. Never throws for what the file holds.
 */
export const verifyExport = async (
  bytes: AsyncIterable<Uint8Array>,
  expected: ExpectedExport,
): Promise<ExportVerification> => {
  let header: ExportHeader | null = null;
  let chain = checkChain(false);
  let entriesRead = 0;
  let entriesChecked = 0;
  let firstFailingEntryId: string | null = null;
  let isContinued = expected.continues === null;
  let last: ExportVerification['last'] = null;

  const result = (status: ExportStatus, message: string): ExportVerification => ({
    status,
    message,
    tenantId: header?.tenantId ?? null,
    createdAt: header?.createdAt ?? null,
    after: header?.after ?? null,
    before: header?.before ?? null,
    fingerprint: header === null ? null : fingerprintOf(header.publicKey),
    pinned: expected.publicKey !== null,
    entriesChecked,
    firstFailingEntryId,
    last: status === 'Valid' ? last : null,
  });

  /** What a file holds that is not whole or not genuine: how much was read of it, and where its chain breaks. */
  const extent = (status: ExportStatus): string => {
    const partial = chain.end(null);
    entriesChecked = entriesRead;
    firstFailingEntryId = partial.firstFailingEntryId;
    if (status === 'OtherKey' || status === 'Rewritten') return '';
    const read = `${counted(entriesRead)} ${entriesRead === 1 ? 'was' : 'were'} read`;
    if (partial.status !== 'Valid') return ` ${read}: entry ${firstFailingEntryId} ${chainMessages[partial.status]}.`;
    if (entriesRead === 0) return ` ${read}.`;
    return ` ${read}, whole and in order up to ${last?.id}.`;
  };

  const requireGenuine = ({ publicKey }: ExportHeader, { end, signature, sha256 }: SealedEnd): void => {
    if (end.sha256 !== sha256 || !isSignedBy(end, signature, signerOf(publicKey)))
      throw new ExportFault('Altered', 'The file was changed after it was signed.');
    if (expected.publicKey !== null && !isExpected(publicKey, expected.publicKey))
      throw new ExportFault('OtherKey', `The file is signed by another key, ${fingerprintOf(publicKey)}.`);
  };

  const judge = (whole: AuditChainVerification): ExportVerification => {
    ({ entriesChecked, firstFailingEntryId } = whole);
    if (whole.status !== 'Valid') {
      const where =
        firstFailingEntryId === null
          ? 'Entries are missing'
          : `Entry ${firstFailingEntryId} ${chainMessages[whole.status]}`;
      return result(whole.status, `${where}: the trail was changed before it was exported.`);
    }
    if (!isContinued)
      throw new ExportFault(
        'Rewritten',
        'The last entry of the earlier export is not in it: the trail was rewritten in between.',
      );
    return result('Valid', 'The file is as it was signed, and its chain is whole.');
  };

  const check = async (): Promise<ExportVerification> => {
    let isSound = true;
    for await (const part of readParts(bytes)) {
      if ('header' in part) {
        ({ header } = part);
        chain = checkChain(header.after === null && header.before === null);
      } else if ('entry' in part) {
        const { id, hash } = part.entry;
        entriesRead += 1;
        // The reading goes on to the end whatever it finds: the signature says whether the file is as it was made.
        isSound = isSound && chain.take(part.entry);
        last = { id, hash };
        if (id === expected.continues?.id && hash === expected.continues.hash) isContinued = true;
      } else if (header !== null) {
        requireGenuine(header, part.sealed);
        return judge(chain.end(part.sealed.end.chain));
      }
    }
    throw new ExportFault('Truncated', 'The file has no end.');
  };

  try {
    return await check();
  } catch (error) {
    if (error instanceof ExportFault) {
      const more = header === null ? '' : extent(error.status);
      return result(error.status, `${error.message}${more}`);
    }
    throw error;
  }
};
