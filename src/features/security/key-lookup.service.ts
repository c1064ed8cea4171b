import { timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../core/dispatch.ts';
import type { Logger } from '../../core/logger.ts';
import { apiKeyHash } from './key-format.rules.ts';
import type { KeyStore, StoredKey } from './keys.store.ts';

/** Turns a key's text into its caller, from memory where possible. */
export interface KeyLookup {
  /** Null: unknown, revoked or expired. A promise only when the store has to be asked. */
  find(key: string): Caller | null | Promise<Caller | null>;
  /** Forgets everything, so that a key that was just revoked stops working at once. */
  forget(): void;
}

export interface KeyLookupDeps {
  readonly store: Pick<KeyStore, 'findByHash' | 'touch'>;
  readonly now: () => number;
  readonly log: Pick<Logger, 'warn'>;
}

// How long another instance may go on accepting a key that was revoked here.
const rememberMs = 5000;
const touchIntervalMs = 60_000;
// Keys in use at one moment; what is beyond is read from the store each time.
const maxKnown = 10_000;
// A flood of made-up keys must not push the real ones out, nor fill the memory.
const maxUnknown = 1000;

interface Remembered {
  readonly readAt: number;
  readonly key: StoredKey;
  readonly caller: Caller;
  touchedAt: number | null;
}

const toCaller = (key: StoredKey): Caller => ({
  tenantId: key.tenantId,
  principal: {
    kind: 'ApiKey',
    role: key.role,
    scopes: new Set(key.scopes),
    actor: `apikey:${key.id}`,
    userId: null,
    apiKey: { id: key.id, name: key.name },
    permissions: new Set(),
  },
});

const remember = <T>(map: Map<string, T>, limit: number, hash: string, value: T): void => {
  map.delete(hash);
  const oldest = map.size < limit ? undefined : map.keys().next().value;
  if (oldest !== undefined) map.delete(oldest);
  map.set(hash, value);
};

export const keyLookup = ({ store, now, log }: KeyLookupDeps): KeyLookup => {
  const known = new Map<string, Remembered>();
  const unknown = new Map<string, number>();
  const pending = new Map<string, Promise<Caller | null>>();
  let generation = 0;

  // A clock that was set back makes an entry old, not young.
  const isFresh = (readAt: number, at: number): boolean => at >= readAt && at - readAt < rememberMs;

  const admit = (entry: Remembered, at: number): Caller | null => {
    const { key } = entry;
    if (key.revokedAt !== null || (key.expiresAt !== null && key.expiresAt <= at)) return null;
    if (entry.touchedAt === null || at - entry.touchedAt >= touchIntervalMs) {
      entry.touchedAt = at;
      store.touch(key.id, at, (error) =>
        log.warn({ error, keyId: key.id }, 'The last use of an API key was not stored.'),
      );
    }
    return entry.caller;
  };

  const read = async (hash: string): Promise<Caller | null> => {
    const started = generation;
    const key = await store.findByHash(hash);
    const at = now();
    if (key === null || !timingSafeEqual(Buffer.from(key.keyHash), Buffer.from(hash))) {
      if (started === generation) remember(unknown, maxUnknown, hash, at);
      return null;
    }
    const entry: Remembered = { readAt: at, key, caller: toCaller(key), touchedAt: key.lastUsedAt };
    // What was read before a revocation must not be remembered after it.
    if (started === generation) remember(known, maxKnown, hash, entry);
    return admit(entry, at);
  };

  return {
    find(key) {
      const hash = apiKeyHash(key);
      const at = now();
      const entry = known.get(hash);
      if (entry !== undefined && isFresh(entry.readAt, at)) return admit(entry, at);
      const refusedAt = unknown.get(hash);
      if (refusedAt !== undefined && isFresh(refusedAt, at)) return null;
      let reading = pending.get(hash);
      if (reading === undefined) {
        reading = read(hash).finally(() => pending.delete(hash));
        pending.set(hash, reading);
      }
      return reading;
    },
    forget() {
      generation += 1;
      known.clear();
      unknown.clear();
      pending.clear();
    },
  };
};
