import { AcpError } from '../../contract/errors.ts';
import type { CallContext } from '../../core/context.ts';
import type { OpenAiResponseRow } from '../../db/tables/openai.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import type { ResponseStore } from './responses.store.ts';

export interface ResponseSourceDeps {
  readonly store: Pick<ResponseStore, 'get' | 'conversation' | 'branchRequests'>;
  readonly sessions: Pick<SessionsFeature, 'store' | 'access' | 'fork'>;
}

/** What a new response goes on from. */
export interface ResponseSource {
  readonly row: OpenAiResponseRow;
  readonly session: SessionRow;
  /** The history up to the end of the response. */
  readonly history: readonly ChatMessage[];
}

const notFound = (id: string): AcpError =>
  new AcpError('previous-response-not-found', `Previous response "${id}" was not found.`, {
    details: { errors: [{ path: 'previous_response_id', message: 'names no response that can be gone on from' }] },
  });

/** What was said up to the end of a response. One that has failed says nothing: it ended where the turns before it did. */
const historyAt = ({ run_id }: OpenAiResponseRow, messages: readonly ChatMessage[]): readonly ChatMessage[] => {
  const own = messages.findLastIndex(({ runId }) => runId === run_id);
  // Ids of runs are in the order of their beginning, and a session has one run at a time.
  const last = own < 0 ? messages.findLastIndex(({ runId }) => runId !== null && runId < run_id) : own;
  return messages.slice(0, last + 1);
};

/** Earlier responses, each with the conversation as it was at its end. */
export const createResponseSources = ({ store, sessions }: ResponseSourceDeps) => ({
  /** Throws for a conversation that somebody else has reserved. Once it is used its session says whose it is. */
  async assertMayBegin({ tenantId, principal }: CallContext, conversationId: string): Promise<void> {
    if (!sessions.access.enabled) return;
    const [row, session] = await Promise.all([
      store.conversation(tenantId, conversationId),
      sessions.store.get(tenantId, conversationId),
    ]);
    if (row !== undefined && session === undefined)
      sessions.access.assertMayRun(principal, conversationId, row.owner_id);
  },
  async find({ tenantId, principal }: CallContext, id: string): Promise<ResponseSource> {
    const row = await store.get(tenantId, id);
    const session = row === undefined ? undefined : await sessions.store.get(tenantId, row.session_id);
    if (row === undefined || session === undefined) throw notFound(id);
    // Another owner's is told as that, where it is named to be run on.
    sessions.access.assertMayRun(principal, session.id, session.owner_id);
    if (session.active_run_id === row.run_id)
      throw new AcpError('session-busy', `Response "${id}" is in progress.`, { details: { retryAfterMs: 1000 } });
    const history = historyAt(row, await sessions.store.messages(session));
    // Of a response that has failed first of all nothing is kept to go on from.
    if (history.length === 0) throw notFound(id);
    return { row, session, history };
  },
  /**
   * What was said before a request that names an earlier response or a conversation. Empty where there is no such thing, or it is
   * somebody else's: what refuses the request says so in its turn.
   */
  async historyOf(
    { tenantId, principal }: CallContext,
    before: { readonly responseId: string } | { readonly conversationId: string },
  ): Promise<readonly ChatMessage[]> {
    const row = 'responseId' in before ? await store.get(tenantId, before.responseId) : undefined;
    const sessionId = 'conversationId' in before ? before.conversationId : row?.session_id;
    const session = sessionId === undefined ? undefined : await sessions.store.get(tenantId, sessionId);
    if (session === undefined || !sessions.access.maySee(principal, session.owner_id)) return [];
    const messages = await sessions.store.messages(session);
    return row === undefined ? messages : historyAt(row, messages);
  },
  /** A session of its own with that history, and with what it waits for. */
  async fork({ row, session, history }: ResponseSource, id: string): Promise<void> {
    await sessions.fork(session, id, history.length);
    const runIds = [...new Set(history.flatMap(({ runId }) => runId ?? []))];
    await store.branchRequests(session.tenant_id, session.id, id, runIds, row.run_id);
  },
});

export type ResponseSources = ReturnType<typeof createResponseSources>;
