import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { clampPaging } from '../../contract/schema.ts';
import type { RunAction, RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import { publicMessage } from '../../engine/context/index.ts';
import { sessionBranchStore } from './session-branches.store.ts';
import type { SessionRemoval } from './session-removal.ts';
import type { sessionOperations } from './sessions.operations.ts';
import type { OpenRequest, SessionRecord } from './sessions.schema.ts';
import type { SessionStore } from './sessions.store.ts';
import type { SessionAccess } from './turns/index.ts';

export interface SessionServiceDeps {
  readonly storage: Storage;
  readonly store: SessionStore;
  readonly access: SessionAccess;
  readonly removeRow: SessionRemoval['remove'];
  /** What a session waits for. */
  openRequests(tenantId: string, sessionId: string): Promise<readonly OpenRequest[]>;
  readonly prefix: string;
  /** Whether reasoning that was kept for its provider is shown. */
  readonly recordReasoningDeltas: boolean;
  readonly authorization: RunAuthorization;
  readonly log: { warn(fields: Readonly<Record<string, unknown>>, message: string): void };
  readonly now: () => number;
  readonly newId: () => string;
}

/** Version of the shape of `state`, for the runner alone. */
const stateSchemaVersion = 1;

export const sessionService = (deps: SessionServiceDeps): Handlers<typeof sessionOperations> => {
  const { storage, store, access, now } = deps;
  // A store that keeps nothing promises no history either: clients must not come to rely on one.
  const { persistent } = storage;

  const toRecord = (row: SessionRow): SessionRecord => ({
    id: row.id,
    tenantId: row.tenant_id,
    agentName: row.agent_name,
    ownerId: row.owner_id,
    conversationId: row.conversation_id,
    version: row.version,
    stateSchemaVersion,
    messageCount: persistent ? row.message_count : null,
    parentSessionId: row.parent_session_id,
    parentConversationId: row.parent_conversation_id,
    branchFromSequence: row.branch_from_sequence,
    lastRunId: row.last_run_id,
    activeRunId: (row.lock_until ?? 0) < now() ? null : row.active_run_id,
    createdAt: isoTime(row.created_at),
    updatedAt: isoTime(row.updated_at),
  });

  const notFound = (sessionId: string) => new AcpError('session-not-found', `Session "${sessionId}" was not found.`);
  const busy = (sessionId: string) =>
    new AcpError('session-busy', `Session "${sessionId}" has a run queued or in progress.`, {
      details: { retryAfterMs: 1000 },
    });

  const allows = (context: CallContext, action: RunAction, row: SessionRow): Promise<boolean> =>
    deps.authorization.allows(context, action, {
      resource: 'Session',
      id: row.id,
      sessionId: row.id,
      agentName: row.agent_name,
    });

  /** A session that the caller may see, and that the host allows it for the action; in its first turn there is none. */
  const find = async (context: CallContext, sessionId: string, action: RunAction): Promise<SessionRow> => {
    const row = await store.get(context.tenantId, sessionId);
    const isThere = row !== undefined && row.version > 0 && access.maySee(context.principal, row.owner_id);
    if (!isThere || !(await allows(context, action, row))) throw notFound(sessionId);
    return row;
  };

  /** How many messages a branch takes over. */
  const branchCount = (row: SessionRow, upToSequence: number | null | undefined): number => {
    if (upToSequence === undefined || upToSequence === null) return row.message_count;
    if (upToSequence < row.message_count) return upToSequence + 1;
    throw outOfRange(`is past the last message, ${row.message_count - 1}`);
  };

  const outOfRange = (message: string) =>
    new AcpError('sequence-out-of-range', `upToSequence ${message}.`, {
      details: { errors: [{ path: 'upToSequence', message }] },
    });

  return {
    async list(context, { query }) {
      const { tenantId, principal } = context;
      await deps.authorization.require(context, 'List', { resource: 'Session', agentName: query.agentName ?? null });
      const filter = { agentName: query.agentName, ownerId: access.listOwner(principal), ...clampPaging(query) };
      return ok((await store.list(tenantId, filter)).map(toRecord));
    },

    async get(context, { params }) {
      const row = await find(context, params.sessionId, 'Read');
      const history = persistent ? await store.messages(row) : null;
      // Deleted between the two reads.
      if (history !== null && history.length < row.message_count) throw notFound(row.id);
      return ok({
        ...toRecord(row),
        messages: history?.map((message, sequence) => publicMessage(message, sequence, deps)) ?? null,
        state: { conversationId: row.conversation_id, nextSequence: row.message_count },
        openRequests: [...(await deps.openRequests(row.tenant_id, row.id))],
      });
    },

    async remove(context, { params }) {
      const row = await find(context, params.sessionId, 'Delete');
      const end = await deps.removeRow(row);
      if (end === 'busy') throw busy(row.id);
      if (end === 'gone') throw notFound(row.id);
      return noContent();
    },

    async branch(context, { params, body }) {
      const { upToSequence, newSessionId } = body;
      if (typeof upToSequence === 'number' && !(Number.isSafeInteger(upToSequence) && upToSequence >= 0))
        throw outOfRange('must be a whole number from 0');
      if (!persistent) throw new AcpError('branch-not-supported', 'The store in memory cannot branch sessions.');
      const source = await find(context, params.sessionId, 'Change');
      const count = branchCount(source, upToSequence);
      const at = now();
      const branch: SessionRow = {
        tenant_id: source.tenant_id,
        id: newSessionId ?? deps.newId(),
        agent_name: source.agent_name,
        owner_id: source.owner_id,
        conversation_id: deps.newId(),
        version: 1,
        message_count: count,
        active_run_id: null,
        lock_until: null,
        last_run_id: null,
        created_at: at,
        updated_at: at,
        parent_session_id: source.id,
        parent_conversation_id: source.conversation_id,
        branch_from_sequence: count - 1,
        // Its source's, which is used only where the branch has all that it stands for.
        summary: null,
        // Whoever branches has come to it as its owner, and not through a door.
        door: null,
      };
      try {
        await storage.stores(sessionBranchStore).branch(source, branch);
      } catch (error) {
        if (error instanceof ConditionFailedError) throw notFound(source.id);
        if (storage.dialect.classify(error) !== 'unique-violation') throw error;
        throw new AcpError('session-exists', `Session "${branch.id}" exists already.`, { cause: error });
      }
      return {
        status: 201,
        body: {
          sessionId: branch.id,
          conversationId: branch.conversation_id,
          parentSessionId: source.id,
          parentConversationId: source.conversation_id,
          branchFromSequence: count - 1,
          copiedItemCount: count,
        },
        headers: { Location: `${deps.prefix}/api/sessions/${branch.id}` },
      };
    },
  };
};
