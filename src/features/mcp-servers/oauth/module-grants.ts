import { AcpError } from '../../../contract/errors.ts';
import { isRecord } from '../../../contract/record.ts';
import type { Logger } from '../../../core/logger.ts';
import { withDeadline } from '../../../engine/tools/index.ts';
import { OutboundError } from '../../../providers/http/outbound-error.ts';
import { McpFailure } from '../../../providers/mcp/mcp-failure.ts';
import { type Grant, type GrantKeeper, type GrantOf, oneRenewal } from './grants.ts';
import type { McpGrantStore } from './mcp-grants.store.ts';
import { memoryGrants } from './memory-grants.ts';
import { inTurn } from './stored-grants.ts';

/** Which server of which tenant tokens are for. */
export interface McpTokenKey {
  readonly tenantId: string;
  readonly serverId: string;
}

/** Keeps the tokens of MCP servers in place of the service. A call that throws, or takes more than 5 s, is one that failed. */
export interface McpTokenStore {
  /** The text that was saved last; null: none. */
  load(key: McpTokenKey, signal: AbortSignal): Promise<string | null>;
  /** Keeps a text of some kilobytes in place of the one before. It is a secret. */
  save(key: McpTokenKey, value: string, signal: AbortSignal): Promise<void>;
  remove(key: McpTokenKey, signal: AbortSignal): Promise<void>;
}

export interface ModuleGrantDeps {
  readonly store: McpTokenStore;
  /** Rows without tokens, by which the processes of a store agree on who renews one. */
  readonly claims: Pick<McpGrantStore, 'place' | 'claim' | 'release' | 'remove'>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  readonly newId: () => string;
  /** Longest time that a renewal may take. */
  readonly renewalMs: number;
}

interface Kept {
  readonly binding: string;
  readonly grant: Grant;
}

const answerWithinMs = 5000;

/** What another version of the service, or somebody else, has saved there may be anything. */
const readKept = (text: unknown): Kept | null => {
  if (typeof text !== 'string') return null;
  try {
    const value: unknown = JSON.parse(text);
    const isKept = isRecord(value) && isRecord(value['grant']) && typeof value['grant']['accessToken'] === 'string';
    return isKept ? (value as unknown as Kept) : null;
  } catch {
    // It is no JSON, so it is nothing of ours.
    return null;
  }
};

/** Grants in a store of the host's; consents are in the memory of the process that has asked for them. */
export const moduleGrants = ({ store, claims, log, now, newId, renewalMs }: ModuleGrantDeps): GrantKeeper => {
  const { offer, take } = memoryGrants(now);

  const asked = async <T>(
    key: McpTokenKey,
    work: (signal: AbortSignal) => Promise<T>,
    failed: (cause: unknown) => Error,
  ): Promise<T> => {
    const end = await withDeadline(work, answerWithinMs, new AbortController().signal);
    if (end.kind === 'returned') return end.value;
    const cause = end.kind === 'threw' ? end.error : new Error('It did not answer in time.');
    log.warn({ tenantId: key.tenantId, serverId: key.serverId, err: cause }, 'The token store of the host failed');
    throw failed(cause);
  };
  const keyOf = ({ tenantId, serverId }: McpTokenKey): McpTokenKey => ({ tenantId, serverId });
  const unavailable = (cause: unknown) =>
    new AcpError('store-unavailable', 'The token store of the host failed.', { cause });
  /** Without its token a server cannot be asked anything. */
  const unanswered = (cause: unknown) =>
    new McpFailure('no-answer', { cause: new OutboundError('unreachable', { cause }) });

  const loaded = async (of: McpTokenKey, failed: (cause: unknown) => Error): Promise<Kept | null> =>
    readKept(await asked(of, (signal) => store.load(keyOf(of), signal), failed));
  const held = async (of: GrantOf): Promise<Grant | null> => {
    const kept = await loaded(of, unanswered);
    return kept?.binding === of.binding ? kept.grant : null;
  };
  const saved = (of: GrantOf, grant: Grant, failed: (cause: unknown) => Error): Promise<void> =>
    asked(
      of,
      (signal) => store.save(keyOf(of), JSON.stringify({ binding: of.binding, grant } satisfies Kept), signal),
      failed,
    );

  /** Whoever calls it has the claim. */
  const renewedAlone: GrantKeeper['renew'] = async (of, isOld, ask) => {
    const grant = await held(of);
    if (grant === null || !isOld(grant)) return grant;
    const next = await ask(grant);
    const current = await held(of);
    // Somebody has forgotten it meanwhile, authorized the service anew, or renewed it elsewhere.
    if (current === null || current.accessToken !== grant.accessToken) return current;
    if (next === null) await asked(of, (signal) => store.remove(keyOf(of), signal), unanswered);
    else await saved(of, next, unanswered);
    return next;
  };
  // Its token is looked at twice, and one is saved.
  const longestMs = 2 * renewalMs + 3 * answerWithinMs;
  const renewed: GrantKeeper['renew'] = (of, isOld, ask) =>
    inTurn(longestMs, async () => {
      const grant = await held(of);
      if (grant === null || !isOld(grant)) return { grant, isDone: true };
      const row = await claims.place(of.tenantId, of.serverId, now());
      // Somebody has forgotten it in between.
      if (row === null) return { grant, isDone: false };
      const claim = { ...row, claimId: newId() };
      if (!(await claims.claim(claim, now(), now() + longestMs))) return { grant, isDone: false };
      try {
        return { grant: await renewedAlone(of, isOld, ask), isDone: true };
      } finally {
        await claims.release(claim);
      }
    });

  return {
    ...{ offer, take, held },
    lacks: () => false,
    keep: (of, grant) => saved(of, grant, unavailable),
    async forget(of) {
      const kept = await loaded(of, unavailable);
      if (kept === null) return null;
      await asked(of, (signal) => store.remove(keyOf(of), signal), unavailable);
      await claims.remove(of.tenantId, of.serverId);
      return kept.grant;
    },
    renew: oneRenewal(renewed),
  };
};
