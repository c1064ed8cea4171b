import { AcpError } from '../../contract/errors.ts';
import type { Clock } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import { defineStore, type StoreHandle } from '../../db/define-store.ts';
import type { IdempotencyKeyRow } from '../../db/tables.ts';

/** The answer that every repeat of a request gets again. */
export interface StoredAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Neither method rejects: the outcome of the request stands, and a key that could not be written lapses by itself. */
interface FirstClaim {
  readonly kind: 'first';
  /** Keeps the answer for every repeat. */
  complete(answer: StoredAnswer): Promise<void>;
  /** Frees the key. */
  abandon(): Promise<void>;
}

export type IdempotencyClaim = FirstClaim | { readonly kind: 'replay'; readonly answer: StoredAnswer };

// A mark that its instance stopped renewing lapses after this.
const markMs = 60_000;
const renewEveryMs = 20_000;

export interface IdempotencyDeps {
  /** How long a tenant's stored answers are given again; null: without an end. */
  keptMs(tenantId: string): Promise<number | null>;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
  readonly newId: () => string;
}

/** A mark of this process. `claim`: what only its own request has, so that nobody writes over the mark of another one. */
interface Mark {
  readonly tenantId: string;
  readonly key: string;
  readonly claim: string;
}

// Each owner has keys of its own; no header has a line break, so that no key reads as another owner's.
const ownedKey = (ownerId: string | null, key: string): string => (ownerId === null ? key : `${ownerId}\n${key}`);

const idempotencyKeys = (storage: StoreHandle, { keptMs, clock, log, newId }: IdempotencyDeps) => {
  const held = new Map<string, Mark>();
  const table = () => storage.db;
  const { now } = clock;
  const renew = ({ tenantId, key, claim }: Mark) =>
    table()
      .updateTable('idempotency_keys')
      .set({ locked_until: now() + markMs })
      .where('tenant_id', '=', tenantId)
      .where('key', '=', key)
      .where('claim', '=', claim)
      .execute()
      // The next round tries again before the mark lapses.
      .catch(() => undefined);
  const renewal = clock.every(renewEveryMs, () => Promise.all([...held.values()].map(renew)));

  // Without effect where another request has the key by now: this one's mark had lapsed.
  const remove = ({ tenantId, key, claim }: Mark) =>
    table()
      .deleteFrom('idempotency_keys')
      .where('tenant_id', '=', tenantId)
      .where('key', '=', key)
      .where('claim', '=', claim)
      .execute();

  /** Of two requests that find the same mark lapsed one removes it; it stays where its own request was quicker. */
  const removeSeen = (row: IdempotencyKeyRow) =>
    table()
      .deleteFrom('idempotency_keys')
      .where('tenant_id', '=', row.tenant_id)
      .where('key', '=', row.key)
      .where('claim', '=', row.claim)
      .where('locked_until', '=', row.locked_until)
      .where('status', row.status === null ? 'is' : '=', row.status)
      .execute();

  const settled = (work: Promise<unknown>): Promise<void> =>
    work.then(
      () => undefined,
      (error: unknown) => log.error({ error }, 'The outcome of a request with an idempotency key could not be stored'),
    );

  const first = (mark: Mark): FirstClaim => {
    const { tenantId, key, claim } = mark;
    held.set(claim, mark);
    return {
      kind: 'first',
      complete(answer) {
        held.delete(claim);
        const { key: _key, ...values } = storage.rows.seal('idempotency_keys', tenantId, {
          key,
          status: answer.status,
          headers: JSON.stringify(answer.headers),
          body: JSON.stringify(answer.body),
        });
        return settled(
          table()
            .updateTable('idempotency_keys')
            .set(values)
            .where('tenant_id', '=', tenantId)
            .where('key', '=', key)
            .where('claim', '=', claim)
            .execute(),
        );
      },
      abandon() {
        held.delete(claim);
        return settled(remove(mark));
      },
    };
  };

  const isOver = async (row: { readonly tenant_id: string; readonly created_at: number }): Promise<boolean> => {
    const kept = await keptMs(row.tenant_id);
    return kept !== null && row.created_at + kept <= now();
  };

  return {
    /** `ownerId`: whose the run is to be; what one owner has asked is never answered to another. Null: nobody's. */
    async claim(
      tenantId: string,
      ownerId: string | null,
      given: string,
      fingerprint: string,
    ): Promise<IdempotencyClaim> {
      const key = ownedKey(ownerId, given);
      const decide = async (): Promise<IdempotencyClaim | null> => {
        const row = await table()
          .selectFrom('idempotency_keys')
          .selectAll()
          .where('tenant_id', '=', tenantId)
          .where('key', '=', key)
          .executeTakeFirst();
        if (row === undefined) return null;
        const lapsed = row.status === null ? row.locked_until <= now() : await isOver(row);
        if (lapsed) {
          await removeSeen(row);
          return null;
        }
        if (row.fingerprint !== fingerprint)
          throw new AcpError('idempotency-key-reused', 'This idempotency key was used with another request.');
        if (row.status === null)
          throw new AcpError(
            'idempotency-in-progress',
            'The first request with this idempotency key has not finished.',
            {
              details: { retryAfterMs: 1000 },
            },
          );
        const { headers, body } = storage.rows.open('idempotency_keys', tenantId, row);
        return {
          kind: 'replay',
          answer: {
            status: row.status,
            headers: JSON.parse(headers ?? '{}') as Record<string, string>,
            body: JSON.parse(body ?? 'null') as unknown,
          },
        };
      };
      const known = await decide();
      if (known !== null) return known;
      const claim = newId();
      try {
        await table()
          .insertInto('idempotency_keys')
          .values({
            tenant_id: tenantId,
            key,
            fingerprint,
            status: null,
            headers: null,
            body: null,
            locked_until: now() + markMs,
            created_at: now(),
            claim,
          })
          .execute();
      } catch (error) {
        if (storage.dialect.classify(error) !== 'unique-violation') throw error;
        // Two requests came at once; the other one was first.
        const other = await decide();
        if (other !== null) return other;
        throw new AcpError('idempotency-in-progress', 'The first request with this idempotency key has not finished.', {
          details: { retryAfterMs: 1000 },
        });
      }
      return first({ tenantId, key, claim });
    },
    /** Frees what a dead owner left in progress. */
    async freeAll(): Promise<void> {
      await table().deleteFrom('idempotency_keys').where('status', 'is', null).execute();
    },
    close: (): void => renewal.stop(),
  };
};

export type IdempotencyKeys = ReturnType<typeof idempotencyKeys>;

export const createIdempotencyKeys = (deps: IdempotencyDeps) =>
  defineStore((storage) => idempotencyKeys(storage, deps));
