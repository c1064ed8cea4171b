import { timingSafeEqual } from 'node:crypto';
import type { Caller } from '../../core/context.ts';
import { byKey, type InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { ApiKeyRow } from '../../db/tables/access.ts';
import { apiKeyHash } from './key-format.rules.ts';
import { authorityOf, type KeyStore } from './keys.store.ts';

export interface KeyLookupDeps {
  readonly store: Pick<KeyStore, 'findByHash' | 'touch'>;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly now: () => number;
  readonly log: Pick<Logger, 'warn'>;
}

const touchIntervalMs = 60_000;
// A flood of made-up keys must neither reach the store each time nor fill the memory.
const mostUnknown = 1000;

interface StoredCaller {
  readonly key: ApiKeyRow;
  readonly caller: Caller;
  touchedAt: number | null;
}

const toCaller = (key: ApiKeyRow): Caller => {
  const { role, scopes } = authorityOf(key);
  return {
    tenantId: key.tenant_id,
    principal: {
      kind: 'ApiKey',
      role,
      scopes: new Set(scopes),
      actor: `apikey:${key.id}`,
      userId: null,
      apiKey: { id: key.id, name: key.name },
      permissions: new Set(),
    },
  };
};

/** Turns a key's text into its caller, from memory where possible. */
export const keyLookup = ({ store, state, now, log }: KeyLookupDeps) => {
  const callers = state.entries<StoredCaller>('apiKeys', {
    load: byKey(async (hash) => {
      const key = await store.findByHash(hash);
      if (key === undefined || !timingSafeEqual(Buffer.from(key.key_hash), Buffer.from(hash))) return null;
      return { key, caller: toCaller(key), touchedAt: key.last_used_at };
    }),
    mostAbsent: mostUnknown,
  });

  const admit = (stored: StoredCaller | null): Caller | null => {
    if (stored === null) return null;
    const { key } = stored;
    const at = now();
    if (key.revoked_at !== null || (key.expires_at !== null && key.expires_at <= at)) return null;
    if (stored.touchedAt === null || at - stored.touchedAt >= touchIntervalMs) {
      stored.touchedAt = at;
      // Nobody waits for it.
      store.touch(key.id, at).catch((error: unknown) => {
        log.warn({ error, keyId: key.id }, 'The last use of an API key was not stored.');
      });
    }
    return stored.caller;
  };

  return {
    /** Null: unknown, revoked or expired. A promise only when the store has to be asked. */
    find(key: string): Caller | null | Promise<Caller | null> {
      const stored = callers.read(apiKeyHash(key));
      return stored instanceof Promise ? stored.then(admit) : admit(stored);
    },
    /** After the commit of what was done to the key with this hash. */
    changed: callers.changed,
  };
};

export type KeyLookup = ReturnType<typeof keyLookup>;
