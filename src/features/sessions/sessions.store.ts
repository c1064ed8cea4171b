import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { SessionMessageRow, SessionRow } from '../../db/tables/sessions.ts';
import type { ChatMessage, KeptSummary } from '../../engine/context/index.ts';

export interface SessionFilter {
  readonly agentName?: string | undefined;
  /** Null: of every owner. */
  readonly ownerId: string | null;
  readonly skip: number;
  readonly take: number;
}

/** What reading a history needs of its session. */
export type Conversation = Pick<SessionRow, 'tenant_id' | 'conversation_id' | 'branch_from_sequence' | 'message_count'>;

export const sessionStore = defineStore((storage) => {
  const { db } = storage;
  const sessionsOf = (tenantId: string) => db.selectFrom('sessions').selectAll().where('tenant_id', '=', tenantId);
  const stored = async (tenantId: string, query: { execute(): Promise<SessionMessageRow[]> }): Promise<ChatMessage[]> =>
    (await query.execute()).map(
      (row) => JSON.parse(storage.rows.open('session_messages', tenantId, row).message) as ChatMessage,
    );
  const insertMessage = insertStatement(
    db,
    'session_messages',
    ({ tenant_id, conversation_id }: SessionRow, sequence: number, message: ChatMessage) =>
      storage.rows.seal('session_messages', tenant_id, { conversation_id, sequence, message: JSON.stringify(message) }),
  );
  const save = updateStatement(
    db,
    'sessions',
    (row: SessionRow, runId: string, messages: readonly ChatMessage[], summary: KeptSummary | null, now: number) => ({
      set: {
        version: row.version + 1,
        message_count: row.message_count + messages.length,
        active_run_id: null,
        lock_until: null,
        last_run_id: runId,
        updated_at: now,
        summary: summaryColumn(row, summary),
      },
      where: { tenant_id: row.tenant_id, id: row.id, version: row.version, active_run_id: runId },
    }),
    { mustChange: true },
  );
  const append = updateStatement(
    db,
    'sessions',
    (row: SessionRow, holder: string, runId: string, messages: readonly ChatMessage[], now: number) => ({
      set: {
        version: row.version + 1,
        message_count: row.message_count + messages.length,
        last_run_id: runId,
        updated_at: now,
      },
      where: { tenant_id: row.tenant_id, id: row.id, version: row.version, active_run_id: holder },
    }),
    { mustChange: true },
  );
  const free = updateStatement(db, 'sessions', (tenantId: string, id: string, runId: string) => ({
    set: { active_run_id: null, lock_until: null },
    where: { tenant_id: tenantId, id, active_run_id: runId },
  }));
  const { sql: lockSql } = db
    .updateTable('sessions')
    .set({ active_run_id: '', lock_until: 0 })
    .where('tenant_id', '=', '')
    .where('id', '=', '')
    // Its own: a further attempt follows one whose process is gone.
    .where((eb) => eb.or([eb('active_run_id', 'is', null), eb('active_run_id', '=', ''), eb('lock_until', '<', 0)]))
    .compile();
  const { sql: dropSql } = db
    .deleteFrom('sessions')
    .where('tenant_id', '=', '')
    .where('id', '=', '')
    .where('active_run_id', '=', '')
    .where('version', '=', 0)
    .compile();

  /** With the active key, also where the summary of before goes on. */
  const summaryColumn = (row: SessionRow, summary: KeptSummary | null): string | null => {
    const text = summary === null ? storage.rows.open('sessions', row.tenant_id, row).summary : JSON.stringify(summary);
    return storage.rows.seal('sessions', row.tenant_id, { id: row.id, summary: text }).summary;
  };

  const messagesBetween = async (
    {
      tenant_id: tenantId,
      conversation_id: id,
      branch_from_sequence: branchedFrom,
    }: Omit<Conversation, 'message_count'>,
    first: number,
    end: number,
  ): Promise<readonly ChatMessage[]> => {
    // A branch shares the beginning of its history with the conversations that wrote it, in flat stretches.
    const shared =
      branchedFrom === null || branchedFrom < first
        ? []
        : await stored(
            tenantId,
            db
              .selectFrom('conversation_segments as segment')
              .innerJoin('session_messages as shared', (join) =>
                join
                  .onRef('shared.conversation_id', '=', 'segment.source_id')
                  .onRef('shared.sequence', '>=', 'segment.first_sequence')
                  .onRef('shared.sequence', '<=', 'segment.last_sequence'),
              )
              .select(['shared.conversation_id', 'shared.sequence', 'shared.message'])
              .where('segment.conversation_id', '=', id)
              .where('shared.sequence', '>=', first)
              .where('shared.sequence', '<', end)
              .orderBy('segment.first_sequence')
              .orderBy('shared.sequence'),
          );
    const own = await stored(
      tenantId,
      db
        .selectFrom('session_messages')
        .select(['conversation_id', 'sequence', 'message'])
        .where('conversation_id', '=', id)
        .where('sequence', '>=', first)
        .where('sequence', '<', end)
        .orderBy('sequence'),
    );
    return shared.length === 0 ? own : [...shared, ...own];
  };

  return {
    get: (tenantId: string, id: string): Promise<SessionRow | undefined> =>
      sessionsOf(tenantId).where('id', '=', id).executeTakeFirst(),
    /** Sessions with at least one saved turn, the last updated first. */
    list(tenantId: string, { agentName, ownerId, skip, take }: SessionFilter): Promise<readonly SessionRow[]> {
      let query = sessionsOf(tenantId).where('version', '>', 0);
      if (agentName !== undefined) query = query.where('agent_name', '=', agentName);
      if (ownerId !== null) query = query.where('owner_id', '=', ownerId);
      return query.orderBy('updated_at', 'desc').orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    /** The messages that the row counts, by sequence; fewer when the session was deleted meanwhile. */
    messages: (conversation: Conversation): Promise<readonly ChatMessage[]> =>
      messagesBetween(conversation, 0, conversation.message_count),
    /** The same of the messages from `first` on and below `end`, which is at most the count of the row. */
    messagesBetween,
    /** The summary that later turns begin with, which the row keeps sealed. */
    summary(session: SessionRow): KeptSummary | null {
      const { summary } = storage.rows.open('sessions', session.tenant_id, session);
      return summary === null ? null : (JSON.parse(summary) as KeptSummary);
    },
    /** A session in its first turn: version 0 until that is saved. Fails its unit when the id is in use. */
    open: insertStatement(db, 'sessions', (session: SessionRow) => session, {
      provenBy: ['tenant_id', 'id', 'conversation_id'],
    }),
    /** Takes a free session for a run, or its own again; fails its unit when another run holds it. */
    lock: (tenantId: string, id: string, runId: string, now: number, lockUntil: number): Statement => ({
      sql: lockSql,
      parameters: [runId, lockUntil, tenantId, id, runId, now],
      mustChange: true,
    }),
    /** Appends a turn on top of the version that was read and frees the session. */
    saveTurn: (
      row: SessionRow,
      runId: string,
      messages: readonly ChatMessage[],
      summary: KeptSummary | null,
      now: number,
    ): readonly Statement[] => [
      save(row, runId, messages, summary, now),
      ...messages.map((message, index) => insertMessage(row, row.message_count + index, message)),
    ],
    /** Appends the turn that a lost run left, for the run that has taken the session on top of the version that was read. */
    keepLostTurn: (
      row: SessionRow,
      holder: string,
      lostRunId: string,
      messages: readonly ChatMessage[],
      now: number,
    ): readonly Statement[] => [
      append(row, holder, lostRunId, messages, now),
      ...messages.map((message, index) => insertMessage(row, row.message_count + index, message)),
    ],
    /** Frees the session; one that never had a turn goes. */
    release: (tenantId: string, id: string, runId: string): readonly Statement[] => [
      { sql: dropSql, parameters: [tenantId, id, runId, 0] },
      free(tenantId, id, runId),
    ],
    async renew(runIds: readonly string[], lockUntil: number): Promise<void> {
      if (runIds.length === 0) return;
      await storage.db
        .updateTable('sessions')
        .set({ lock_until: lockUntil })
        .where('active_run_id', 'in', runIds)
        .execute();
    },
    /** Frees every session: for the owner of the store at its start, when nothing can be executing. */
    async freeAll(): Promise<void> {
      await storage.db.deleteFrom('sessions').where('version', '=', 0).execute();
      await storage.db
        .updateTable('sessions')
        .set({ active_run_id: null, lock_until: null })
        .where('active_run_id', 'is not', null)
        .execute();
    },
  };
});

export type SessionStore = StoreOf<typeof sessionStore>;
