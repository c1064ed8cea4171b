import { createHash } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Idempotency, KeyedRequest } from '../../core/idempotency.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import { createIdempotencyKeys, type StoredAnswer } from './idempotency.store.ts';

// What the first answer took says nothing about a repeat.
const ofOneAnswer = 'X-Acp-Overhead-Ms';

/** Tenant, method, path and raw body: the same key with another request is refused. */
const fingerprint = ({ tenantId, method, path, body }: KeyedRequest): string =>
  createHash('sha256').update(`${tenantId}\n${method}\n${path}\n`).update(body).digest('hex');

/** Keys are compared as bytes, so only their length is ruled. */
const checkKey = (key: string, { Enabled, MaxKeyLength }: Config['Service']['Idempotency']): void => {
  if (!Enabled) throw new AcpError('idempotency-disabled', 'Idempotency keys are switched off on this service.');
  if (key.length === 0 || key.length > MaxKeyLength)
    throw new AcpError('idempotency-key-invalid', `The idempotency key must have 1 to ${MaxKeyLength} characters.`);
};

const replyOf = ({ status, headers, body }: StoredAnswer): unknown => ({
  status,
  headers: { ...headers, 'Idempotency-Replayed': 'true' },
  body,
});

interface IdempotencyDeps {
  readonly config: Pick<Config, 'Service'>;
  readonly storage: Storage;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly newId: () => string;
  /** How long a tenant's stored answers are given again; null: without an end. */
  keptMs(tenantId: string): Promise<number | null>;
}

/** Answers that are kept under the key that a caller has sent, for whichever operation declares it. */
export const idempotencyFeature = (deps: IdempotencyDeps) => {
  const keys = deps.storage.stores(createIdempotencyKeys(deps));
  const idempotency: Idempotency =
    (request) =>
    async <R extends Omit<StoredAnswer, 'headers' | 'body'> & Partial<StoredAnswer>>(
      ownerId: string | null,
      answer: () => Promise<R>,
    ): Promise<R> => {
      checkKey(request.key, deps.config.Service.Idempotency);
      const claim = await keys.claim(request.tenantId, ownerId, request.key, fingerprint(request));
      if (claim.kind === 'replay') return replyOf(claim.answer) as R;
      const reply = await answer().catch(async (error: unknown) => {
        await claim.abandon();
        throw error;
      });
      const { [ofOneAnswer]: _, ...headers } = reply.headers ?? {};
      await claim.complete({ status: reply.status, headers, body: reply.body });
      return reply;
    };
  return { idempotency, leftovers: { idempotencyMarks: keys.freeAll }, close: keys.close };
};
