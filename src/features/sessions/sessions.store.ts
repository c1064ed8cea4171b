import { insertStatement, type Statement, updateStatement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { SessionRow } from '../../db/tables.ts';
import type { ChatMessage } from '../../engine/chat-message.ts';

export interface NewSession {
  readonly tenantId: string;
  readonly id: string;
  readonly agentName: string;
  readonly conversationId: string;
  readonly now: number;
}

export interface SessionStore {
  get(tenantId: string, id: string): Promise<SessionRow | undefined>;
  messages(conversationId: string): Promise<readonly ChatMessage[]>;
  /** A session in its first turn: version 0 until that is saved. Fails its unit when the id is in use. */
  open(session: NewSession, runId: string, lockUntil: number): Statement;
  /** Takes a free session for a run; fails its unit when another run holds it. */
  lock(tenantId: string, id: string, runId: string, now: number, lockUntil: number): Statement;
  /** Appends a turn on top of the version that was read and frees the session. */
  saveTurn(row: SessionRow, runId: string, messages: readonly ChatMessage[], now: number): readonly Statement[];
  /** Frees the session; one that never had a turn goes. */
  release(tenantId: string, id: string, runId: string): readonly Statement[];
  renew(runIds: readonly string[], lockUntil: number): Promise<void>;
  /** Frees every session: for the owner of the store at its start, when nothing can be executing. */
  freeAll(): Promise<void>;
}

export const createSessionStore = (storage: Storage): SessionStore => {
  const { db } = storage;
  const insertSession = insertStatement(db, 'sessions', [
    'tenant_id',
    'id',
    'agent_name',
    'owner_id',
    'conversation_id',
    'version',
    'message_count',
    'active_run_id',
    'lock_until',
    'created_at',
    'updated_at',
  ]);
  const insertMessage = insertStatement(db, 'session_messages', ['conversation_id', 'sequence', 'message']);
  const save = updateStatement(
    db,
    'sessions',
    ['version', 'message_count', 'active_run_id', 'lock_until', 'last_run_id', 'updated_at'],
    ['tenant_id', 'id', 'version', 'active_run_id'],
    { mustChange: true },
  );
  const free = updateStatement(db, 'sessions', ['active_run_id', 'lock_until'], ['tenant_id', 'id', 'active_run_id']);
  const { sql: lockSql } = db
    .updateTable('sessions')
    .set({ active_run_id: '', lock_until: 0 })
    .where('tenant_id', '=', '')
    .where('id', '=', '')
    .where((eb) => eb.or([eb('active_run_id', 'is', null), eb('lock_until', '<', 0)]))
    .compile();
  const { sql: dropSql } = db
    .deleteFrom('sessions')
    .where('tenant_id', '=', '')
    .where('id', '=', '')
    .where('active_run_id', '=', '')
    .where('version', '=', 0)
    .compile();

  return {
    get: (tenantId, id) =>
      storage.db
        .selectFrom('sessions')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '=', id)
        .executeTakeFirst(),
    async messages(conversationId) {
      const rows = await storage.db
        .selectFrom('session_messages')
        .select('message')
        .where('conversation_id', '=', conversationId)
        .orderBy('sequence')
        .execute();
      return rows.map((row) => JSON.parse(row.message) as ChatMessage);
    },
    open: (session, runId, lockUntil) =>
      insertSession({
        tenant_id: session.tenantId,
        id: session.id,
        agent_name: session.agentName,
        owner_id: null,
        conversation_id: session.conversationId,
        version: 0,
        message_count: 0,
        active_run_id: runId,
        lock_until: lockUntil,
        created_at: session.now,
        updated_at: session.now,
      }),
    lock: (tenantId, id, runId, now, lockUntil) => ({
      sql: lockSql,
      parameters: [runId, lockUntil, tenantId, id, now],
      mustChange: true,
    }),
    saveTurn: (row, runId, messages, now) => [
      save(
        {
          version: row.version + 1,
          message_count: row.message_count + messages.length,
          active_run_id: null,
          lock_until: null,
          last_run_id: runId,
          updated_at: now,
        },
        { tenant_id: row.tenant_id, id: row.id, version: row.version, active_run_id: runId },
      ),
      ...messages.map((message, index) =>
        insertMessage({
          conversation_id: row.conversation_id,
          sequence: row.message_count + index,
          message: JSON.stringify(message),
        }),
      ),
    ],
    release: (tenantId, id, runId) => [
      { sql: dropSql, parameters: [tenantId, id, runId, 0] },
      free({ active_run_id: null, lock_until: null }, { tenant_id: tenantId, id, active_run_id: runId }),
    ],
    async renew(runIds, lockUntil) {
      if (runIds.length === 0) return;
      await storage.db
        .updateTable('sessions')
        .set({ lock_until: lockUntil })
        .where('active_run_id', 'in', runIds)
        .execute();
    },
    async freeAll() {
      await storage.db.deleteFrom('sessions').where('version', '=', 0).execute();
      await storage.db
        .updateTable('sessions')
        .set({ active_run_id: null, lock_until: null })
        .where('active_run_id', 'is not', null)
        .execute();
    },
  };
};
