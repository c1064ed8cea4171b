import { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { withDeadline } from '../../engine/tools/index.ts';

/** How the store knows a person; ids of the calling tenant. */
export interface SubjectIdentity {
  readonly userIds: readonly string[];
  readonly sessionIds: readonly string[];
  readonly ownerIds: readonly string[];
}

/** Turns what names a person to the host into the ids of the store; null: nobody. */
export interface DataSubjectResolver {
  resolve(
    subject: { readonly tenantId: string; readonly id: string },
    signal: AbortSignal,
  ): Promise<SubjectIdentity | null>;
}

const timeoutMs = 10_000;
const retryAfterMs = 5000;
const nobody: SubjectIdentity = { userIds: [], sessionIds: [], ownerIds: [] };

const texts = (value: unknown): readonly string[] | null =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? value : null;

/** A module is not type-checked at run time; null: it gave something else. */
const identityOf = (value: unknown): SubjectIdentity | null => {
  if (value === null || value === undefined) return nobody;
  const { userIds, sessionIds, ownerIds } = value as Record<string, unknown>;
  const [users, sessions, owners] = [texts(userIds), texts(sessionIds), texts(ownerIds)];
  return users === null || sessions === null || owners === null
    ? null
    : { userIds: users, sessionIds: sessions, ownerIds: owners };
};

export type ResolveSubject = (tenantId: string, id: string, signal: AbortSignal) => Promise<SubjectIdentity>;

/** Throws `data-subject-resolver-missing` without a resolver: an empty answer would say that nothing is stored. */
export const subjectResolution =
  (resolver: DataSubjectResolver | null, log: Pick<Logger, 'error'>): ResolveSubject =>
  async (tenantId, id, signal) => {
    if (resolver === null)
      throw new AcpError('data-subject-resolver-missing', 'No module of this service can say who a person is.');
    const end = await withDeadline((inner) => resolver.resolve({ tenantId, id }, inner), timeoutMs, signal);
    const identity = end.kind === 'returned' ? identityOf(end.value) : null;
    if (identity !== null) return identity;
    log.error(
      { tenantId, end: end.kind, error: end.kind === 'threw' ? end.error : null },
      'The data-subject resolver failed',
    );
    const message = 'The data-subject resolver of the host failed; nothing was touched.';
    throw new AcpError('data-subject-resolver-failed', message, { details: { retryAfterMs } });
  };
