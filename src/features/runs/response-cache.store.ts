import { createHash } from 'node:crypto';
import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { defineStore } from '../../db/define-store.ts';
import { statementOf } from '../../db/statement.ts';
import type { ResponseCache } from '../../engine/turn/index.ts';
import type { ModelPart } from '../../providers/models/model-provider.ts';

// A larger answer is rarely asked for twice, and every hit reads and parses it whole.
const maxAnswerBytes = 262_144;
const sweepEveryMs = 60_000;
// Rows deleted in one step: other writes get their turn in between.
const sweptAtOnce = 200;
/** Answers of all tenants together; of more, those that expire first go. */
const defaultMaxKept = 50_000;

/** Equal calls of two tenants are two rows. */
const rowId = (tenantId: string, key: string): string =>
  createHash('sha256').update(`${tenantId}\n${key}`).digest('base64url');

export const createResponseCache = (
  clock: Clock,
  log: Pick<Logger, 'warn'>,
  batch: Pick<BatchedWrites, 'write'>,
  maxKept = defaultMaxKept,
) =>
  defineStore((storage) => {
    const { now } = clock;
    let timer: Timer | null = null;
    let closed = false;

    /** Up to when answers go because there are too many; null: there are not. */
    const surplusUpTo = async (): Promise<number | null> => {
      const row = await storage.db
        .selectFrom('response_cache')
        .select('expires_at')
        .orderBy('expires_at', 'desc')
        .limit(1)
        .offset(maxKept)
        .executeTakeFirst();
      return row === undefined ? null : row.expires_at + 1;
    };

    /** Removes all that have expired, and what is too many; how many. */
    const removeExpired = async (): Promise<number> => {
      const surplus = (await surplusUpTo()) ?? 0;
      let removed = 0;
      while (!closed) {
        const count = await storage.dialect.deleteChunk(
          'response_cache',
          'id',
          { column: 'expires_at', below: Math.max(now(), surplus) },
          sweptAtOnce,
        );
        removed += count;
        if (count < sweptAtOnce) break;
      }
      return removed;
    };

    const cache: ResponseCache = {
      async find(tenantId, key, lifetimeMs) {
        try {
          const row = await storage.db
            .selectFrom('response_cache')
            .select(['id', 'answer'])
            .where('id', '=', rowId(tenantId, key))
            .where('tenant_id', '=', tenantId)
            // The definition may ask for fresher answers than it did when this one was kept.
            .where('created_at', '>', now() - lifetimeMs)
            .where('expires_at', '>', now())
            .executeTakeFirst();
          if (row === undefined) return null;
          return JSON.parse(storage.rows.open('response_cache', tenantId, row).answer) as readonly ModelPart[];
        } catch (error) {
          log.warn({ error }, 'The response cache could not be read, so the model is called');
          return null;
        }
      },
      keep(tenantId, key, lifetimeMs, parts) {
        const answer = JSON.stringify(parts);
        if (Buffer.byteLength(answer) > maxAnswerBytes) return;
        const createdAt = now();
        const id = rowId(tenantId, key);
        const times = { created_at: createdAt, expires_at: createdAt + lifetimeMs };
        const { id: _id, ...values } = storage.rows.seal('response_cache', tenantId, { id, answer, ...times });
        const query = storage.db
          .insertInto('response_cache')
          .values({ id, tenant_id: tenantId, ...values })
          .onConflict((conflict) => conflict.column('id').doUpdateSet(values));
        batch.write([statementOf(query, { isRepeatable: true })]).catch((error: unknown) => {
          log.warn({ error }, 'An answer could not be kept in the response cache');
        });
      },
    };

    return {
      ...cache,
      /** Removes expired answers now and then; until `close`. */
      start(): void {
        timer ??= clock.every(sweepEveryMs, () =>
          removeExpired().catch((error: unknown) => {
            // A sweep that the end of the service overtook is no fault.
            if (!closed) log.warn({ error }, 'Expired answers could not be removed from the response cache');
          }),
        );
      },
      removeExpired,
      close(): void {
        closed = true;
        timer?.stop();
      },
    };
  });
