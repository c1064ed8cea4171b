import { setTimeout as wait } from 'node:timers/promises';
import { type Consent, type Grant, type GrantKeeper, type GrantOf, oneRenewal } from './grants.ts';
import type { McpGrantStore, StoredGrant } from './mcp-grants.store.ts';

export interface StoredGrantDeps {
  readonly store: McpGrantStore;
  readonly now: () => number;
  readonly newId: () => string;
  /** Longest time that a renewal may take. */
  readonly renewalMs: number;
}

// Another process asks for the tokens meanwhile.
const lookAgainMs = 100;

/**
 * Attempts again while another process has it in hand, for so long; then what that one has not replaced by then counts.
 */
export const inTurn = async (
  longestMs: number,
  attempt: () => Promise<{ readonly grant: Grant | null; readonly isDone: boolean }>,
): Promise<Grant | null> => {
  const endsAt = performance.now() + longestMs;
  for (;;) {
    const { grant, isDone } = await attempt();
    if (isDone || performance.now() >= endsAt) return grant;
    await wait(lookAgainMs);
  }
};

const readGrant = ({ value }: Pick<StoredGrant, 'value'>): Grant => JSON.parse(value) as Grant;

/** Grants in the store, for all processes that share it: one of them renews a grant, and the others take what it got. */
export const storedGrants = ({ store, now, newId, renewalMs }: StoredGrantDeps): GrantKeeper => {
  const stored = async ({ tenantId, serverId, binding }: GrantOf): Promise<StoredGrant | null> => {
    const row = await store.find(tenantId, serverId);
    return row?.binding === binding ? row : null;
  };
  const held = async (of: GrantOf): Promise<Grant | null> => {
    const row = await stored(of);
    return row === null ? null : readGrant(row);
  };

  /** Null: somebody else has it in hand. */
  const claimed = async (
    of: GrantOf,
    row: StoredGrant,
    ask: (grant: Grant) => Promise<Grant | null>,
  ): Promise<{ readonly grant: Grant | null } | null> => {
    const claim = { ...row, claimId: newId() };
    // One whose process has died is free again once nobody can be waiting for an answer any more.
    if (!(await store.claim(claim, now(), now() + 2 * renewalMs))) return null;
    let next: Grant | null;
    try {
      next = await ask(readGrant(row));
    } catch (error) {
      await store.release(claim);
      throw error;
    }
    if (next === null) await store.endClaimed(claim);
    else await store.replaceClaimed(claim, JSON.stringify(next), now());
    return { grant: await held(of) };
  };

  const renewed: GrantKeeper['renew'] = (of, isOld, ask) =>
    inTurn(2 * renewalMs, async () => {
      const row = await stored(of);
      const grant = row === null ? null : readGrant(row);
      if (row === null || grant === null || !isOld(grant)) return { grant, isDone: true };
      const done = await claimed(of, row, ask);
      return done === null ? { grant, isDone: false } : { grant: done.grant, isDone: true };
    });

  return {
    held,
    lacks: () => false,
    keep: ({ tenantId, serverId, binding }, grant) =>
      store.save({ tenantId, serverId, binding, value: JSON.stringify(grant) }, now()),
    async forget({ tenantId, serverId }) {
      const row = await store.find(tenantId, serverId);
      return row !== null && (await store.remove(tenantId, serverId)) ? readGrant(row) : null;
    },
    renew: oneRenewal(renewed),
    async offer(stateHash, consent) {
      const { tenantId, expiresAt } = consent;
      await store.offer({ stateHash, tenantId, value: JSON.stringify(consent), expiresAt }, now());
    },
    async take(stateHash) {
      const value = await store.take(stateHash);
      return value === null ? null : (JSON.parse(value) as Consent);
    },
  };
};
