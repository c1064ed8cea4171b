import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { OpenAiConversationRow } from '../../db/tables/openai.ts';
import type { SessionRow } from '../../db/tables/sessions.ts';
import type { AuditLog } from '../audit/index.ts';
import type { SessionsFeature } from '../sessions/index.ts';
import { HistoryGoneError } from './history-window.ts';
import { createItemPages } from './item-pages.ts';
import { hexOf, type ItemRules, itemPage } from './items.ts';
import type { Metadata } from './openai.schema.ts';
import { checkedMetadata } from './request.rules.ts';
import type { conversationOperations } from './responses.operations.ts';
import { type ResponseStore, responseStore } from './responses.store.ts';

export interface ConversationServiceDeps {
  readonly store: ResponseStore;
  readonly sessions: Pick<SessionsFeature, 'store' | 'access' | 'remove'>;
  readonly authorization: RunAuthorization;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly items: ItemRules;
  /** False: the store keeps nothing, and shows no history either. */
  readonly persistent: boolean;
  readonly enabled: boolean;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What is reserved, what runs have made of it, or both. */
interface Found {
  readonly id: string;
  readonly row: OpenAiConversationRow | undefined;
  readonly session: SessionRow | undefined;
}

export const conversationService = (deps: ConversationServiceDeps): Handlers<typeof conversationOperations> => {
  const { store, sessions, now } = deps;
  const pages = createItemPages({ store: sessions.store, items: deps.items });

  const notFound = (id: string): AcpError =>
    new AcpError('conversation-not-found', `Conversation "${id}" was not found.`);

  const requireEnabled = (): void => {
    if (!deps.enabled) throw new AcpError('unknown-url', 'Conversations are switched off here.');
  };

  const allows = (context: CallContext, action: 'Read' | 'Delete' | 'Change', { id, session }: Found) =>
    deps.authorization.allows(context, action, {
      resource: 'Session',
      id,
      sessionId: id,
      agentName: session?.agent_name ?? null,
    });

  /** Whose it is says its session, or who has reserved it. */
  const find = async (context: CallContext, id: string, action: 'Read' | 'Delete' | 'Change'): Promise<Found> => {
    requireEnabled();
    const { tenantId, principal } = context;
    // The sessions of responses are theirs.
    if (id.startsWith('resp_')) throw notFound(id);
    const [row, session] = await Promise.all([store.conversation(tenantId, id), sessions.store.get(tenantId, id)]);
    if (row === undefined && session === undefined) throw notFound(id);
    const found = { id, row, session };
    const owner = session === undefined ? (row?.owner_id ?? null) : session.owner_id;
    if (!sessions.access.maySee(principal, owner) || !(await allows(context, action, found))) throw notFound(id);
    return found;
  };

  const shown = ({ id, row, session }: Found) => ({
    id,
    object: 'conversation' as const,
    created_at: Math.floor((row?.created_at ?? session?.created_at ?? 0) / 1000),
    metadata: row === undefined ? {} : (JSON.parse(row.metadata) as Metadata),
  });

  /** Null: nothing has been said, or the store shows no history. */
  const readable = ({ session }: Found): SessionRow | null => (deps.persistent ? (session ?? null) : null);

  /** The conversation may be removed while its items are read. */
  const whileThere = <T>(id: string, read: Promise<T>): Promise<T> =>
    read.catch((error: unknown) => {
      throw error instanceof HistoryGoneError ? notFound(id) : error;
    });

  return {
    async create(context, { body }) {
      requireEnabled();
      const items = body?.items ?? [];
      if (!Array.isArray(items) || items.length > 0)
        throw new AcpError('validation-failed', 'items must be empty: what is said comes from runs alone.', {
          details: { errors: [{ path: 'items', message: 'must be empty' }] },
        });
      const { tenantId, principal } = context;
      const row: OpenAiConversationRow = {
        tenant_id: tenantId,
        id: `conv_${hexOf(deps.newId())}`,
        owner_id: sessions.access.newOwner(principal),
        metadata: JSON.stringify(checkedMetadata(body?.metadata)),
        created_at: now(),
      };
      await store.saveConversation(row);
      return ok(shown({ id: row.id, row, session: undefined }));
    },
    async get(context, { params }) {
      return ok(shown(await find(context, params.conversationId, 'Read')));
    },
    async update(context, { params, body }) {
      const found = await find(context, params.conversationId, 'Change');
      const { id, row, session } = found;
      const changed: OpenAiConversationRow = {
        tenant_id: context.tenantId,
        id,
        owner_id: row?.owner_id ?? session?.owner_id ?? null,
        metadata: JSON.stringify(checkedMetadata(body.metadata)),
        created_at: row?.created_at ?? session?.created_at ?? now(),
      };
      await store.saveConversation(changed);
      return ok(shown({ ...found, row: changed }));
    },
    async remove(context, { params }) {
      const found = await find(context, params.conversationId, 'Delete');
      const { id, session } = found;
      const end = session === undefined ? 'gone' : await sessions.remove(session);
      if (end === 'busy')
        throw new AcpError('session-busy', `A run is active in conversation "${id}".`, {
          details: { retryAfterMs: 1000 },
        });
      await deps.audit.change(context, async (stores, tell) => {
        const reserved = await stores(responseStore).removeConversation(context.tenantId, id);
        // Somebody else has removed it in the same moment: the one who removes what is reserved, else the session.
        if (!reserved && (found.row !== undefined || end === 'gone')) throw notFound(id);
        tell({ id, before: shown(found), after: null });
      });
      return ok({ id, object: 'conversation.deleted', deleted: true });
    },
    async items(context, { params, query }) {
      const { conversationId } = params;
      const session = readable(await find(context, conversationId, 'Read'));
      return ok(session === null ? itemPage([], query) : await whileThere(conversationId, pages.page(session, query)));
    },
    async item(context, { params }) {
      const { conversationId } = params;
      const session = readable(await find(context, conversationId, 'Read'));
      const item = session === null ? null : await whileThere(conversationId, pages.item(session, params.itemId));
      if (item === null) throw new AcpError('item-not-found', `Item "${params.itemId}" was not found.`);
      return ok(item);
    },
  };
};
