import { isDecryptionFailure } from '../../core/content-cipher.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { idFloor, idSlackMs } from '../../db/started-after.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';

/** Runs that were created from `sinceMs` on and before `untilMs`. */
export interface HistoryWindow {
  readonly sinceMs: number;
  readonly untilMs: number;
}

export interface StoredInput {
  readonly messages: string;
  readonly context: string | null;
}

/** What all runs of a tree below its root have used. */
export interface TreeUse {
  readonly tokens: number;
  readonly costMicros: number;
}

export interface EventPack {
  readonly last_sequence: number;
  readonly events: string;
}

// With what hangs on them a few megabytes at most times; a chunk is what is in memory at once.
const runsPerChunk = 100;
const packsPerRead = 32;

/** What is sealed under a key that is gone stays unread: it is counted as missing, and the rest is looked at. */
const readable = <T>(open: () => T, otherwise: T): T => {
  try {
    return open();
  } catch (error) {
    if (isDecryptionFailure(error)) return otherwise;
    throw error;
  }
};

/** Recorded runs of one tenant, read beside the event loop and never all at once. */
export const historyStore = defineStore((storage) => {
  const { db } = storage;
  return {
    /** By id, after one of them, which is about the order in which they were created. */
    runs(
      tenantId: string,
      { sinceMs, untilMs, ownerId }: HistoryWindow & { readonly ownerId: string | null },
      afterId: string,
      rootsOnly: boolean,
    ): Promise<readonly RunRow[]> {
      const query = db
        .selectFrom('runs')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('id', '>', afterId === '' ? idFloor(sinceMs - idSlackMs) : afterId)
        .where('id', '<', idFloor(untilMs))
        .where('created_at', '>=', sinceMs)
        .where('created_at', '<', untilMs)
        .orderBy('id')
        .limit(runsPerChunk)
        .$if(ownerId !== null, (runs) => runs.where('owner_id', '=', ownerId));
      return storage.history(rootsOnly ? query.where('parent_run_id', 'is', null) : query);
    },
    async inputs(tenantId: string, runIds: readonly string[]): Promise<ReadonlyMap<string, StoredInput>> {
      const rows = await storage.history(db.selectFrom('run_inputs').selectAll().where('run_id', 'in', runIds));
      return new Map(
        rows.flatMap((row) => {
          const input = readable(() => storage.rows.open('run_inputs', tenantId, row), null);
          return input === null ? [] : [[row.run_id, { messages: input.messages, context: input.context }]];
        }),
      );
    },
    async toolCalls(
      tenantId: string,
      runIds: readonly string[],
    ): Promise<ReadonlyMap<string, readonly ToolInvocationRow[]>> {
      const query = db
        .selectFrom('tool_invocations')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('run_id', 'in', runIds);
      const rows = await storage.history(query.orderBy('run_id').orderBy('id'));
      const unread = { arguments: null, result: null, error: null };
      const calls = rows.map((row) =>
        readable(() => storage.rows.open('tool_invocations', tenantId, row), { ...row, ...unread }),
      );
      return Map.groupBy(calls, ({ run_id }) => run_id);
    },
    /** Some packs of events that follow a sequence; one that cannot be read has none. */
    async events(tenantId: string, runId: string, afterSequence: number): Promise<readonly EventPack[]> {
      const query = db
        .selectFrom('run_events')
        .select(['run_id', 'first_sequence', 'last_sequence', 'events'])
        .where('run_id', '=', runId)
        .where('first_sequence', '>', afterSequence)
        .orderBy('first_sequence')
        .limit(packsPerRead);
      const rows = await storage.history(query);
      return rows.map((row) =>
        readable(() => storage.rows.open('run_events', tenantId, row), { ...row, events: '[]' }),
      );
    },
    async treeUse(tenantId: string, rootIds: readonly string[]): Promise<ReadonlyMap<string, TreeUse>> {
      const query = db
        .selectFrom('runs')
        .select((eb) => [
          'root_run_id as root',
          eb.fn.sum<number | string | null>('total_tokens').as('tokens'),
          eb.fn.sum<number | string | null>('total_cost_micros').as('cost'),
        ])
        .where('root_run_id', 'in', rootIds)
        .where('tenant_id', '=', tenantId)
        .where('parent_run_id', 'is not', null)
        .groupBy('root_run_id');
      const rows = await storage.history(query);
      return new Map(
        rows.map(({ root, tokens, cost }) => [
          root ?? '',
          { tokens: Number(tokens ?? 0), costMicros: Number(cost ?? 0) },
        ]),
      );
    },
    /** Calls of sessions that were put to a person, as `session\ncall`. */
    async askedCalls(tenantId: string, sessionIds: readonly string[]): Promise<ReadonlySet<string>> {
      if (sessionIds.length === 0) return new Set();
      const query = db
        .selectFrom('session_requests')
        .select(['session_id', 'tool_call_id'])
        .where('tenant_id', '=', tenantId)
        .where('session_id', 'in', sessionIds)
        .where('kind', '=', 'Approval');
      return new Set((await storage.history(query)).map((row) => `${row.session_id}\n${row.tool_call_id}`));
    },
  };
});

export type HistoryStore = StoreOf<typeof historyStore>;
