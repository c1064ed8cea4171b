import type { ExpressionBuilder } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { type BoundLater, preparedQuery, statementOf, updateStatement } from '../../db/statement.ts';
import type { RunRow, Tables, ToolInvocationRow } from '../../db/tables.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import type { RunInputContext, StoredModelCalls } from '../../engine/record/index.ts';
import { listRuns, type RunFilter } from './run-list.store.ts';

/** One run of a tree, as far as a walk over all of it needs to know. */
export interface TreeMember {
  readonly id: string;
  readonly status: string;
  readonly agentName: string;
  readonly agentVersion: number | null;
  /** As `runs.agent_saved_at`. */
  readonly agentSavedAt: number | null;
  /** True: another system has executed it. */
  readonly isRemote: boolean;
}

/** How far a run has come. */
export interface LogHead {
  /** Null: there is no such run. */
  readonly status: string | null;
  /** -1: nothing of its log is stored, or not any more. */
  readonly lastSequence: number;
}

/** A run as somebody has just read it, or with no need of that: in line as it was accepted. */
export type FoundRun = LoggedRun | 'AsAccepted';

/** A run with how far its log has come. */
export interface LoggedRun {
  /** Undefined: there is no such run. */
  readonly row: RunRow | undefined;
  /** -1: nothing of its log is stored. */
  readonly lastSequence: number;
}

export interface RecordedInput {
  readonly messages: readonly ChatMessage[];
  readonly context: RunInputContext;
}

const noContext: RunInputContext = { culture: null, parameters: {}, historyLength: null };

// A tree is truncated at this many runs, as the tree operation promises; larger sums would only slow every listing.
const maxTreeRows = 200;

// Few enough for the parameters that a statement may have.
const headsPerQuery = 500;

/** The number of the last event of a run; null: there is none. */
const lastOfLog = (eb: ExpressionBuilder<Tables, 'runs'>) =>
  eb
    .selectFrom('run_events')
    .select('last_sequence')
    .whereRef('run_events.run_id', '=', 'runs.id')
    .orderBy('first_sequence', 'desc')
    .limit(1)
    .as('logged_to');

export const runStore = defineStore((storage) => {
  const runsOf = (tenantId: string) => storage.db.selectFrom('runs').where('tenant_id', '=', tenantId);
  const settledCalls = (tenantId: string, runId: string) =>
    storage.db
      .selectFrom('tool_invocations')
      .where('run_id', '=', runId)
      .where('tenant_id', '=', tenantId)
      .where('state', '=', 'Settled');
  // Asked for with all jobs that a worker takes at once.
  const withLog = preparedQuery(
    storage,
    (parameter: BoundLater<'tenantId' | 'runId'>) =>
      runsOf(parameter('tenantId')).selectAll().select(lastOfLog).where('id', '=', parameter('runId')),
    { isTogether: true },
  );
  return {
    list: (tenantId: string, filter: RunFilter): Promise<readonly RunRow[]> => listRuns(storage, tenantId, filter),
    get: (tenantId: string, runId: string): Promise<RunRow | undefined> =>
      runsOf(tenantId).selectAll().where('id', '=', runId).executeTakeFirst(),
    async withLog(tenantId: string, runId: string): Promise<LoggedRun> {
      const [found] = await withLog({ tenantId, runId });
      if (found === undefined) return { row: undefined, lastSequence: -1 };
      const { logged_to: last, ...row } = found;
      return { row, lastSequence: last ?? -1 };
    },
    /** All members of the trees of these roots, the roots left out. */
    async descendants(tenantId: string, rootIds: readonly string[]): Promise<readonly RunRow[]> {
      if (rootIds.length === 0) return [];
      return storage.db
        .selectFrom('runs')
        .selectAll()
        .where('root_run_id', 'in', rootIds)
        .where('tenant_id', '=', tenantId)
        .limit(maxTreeRows * rootIds.length)
        .execute();
    },
    /** Members of the root's tree that are Running, the root left out. */
    executing: (tenantId: string, rootId: string): Promise<readonly RunRow[]> =>
      storage.db
        .selectFrom('runs')
        .selectAll()
        .where('root_run_id', '=', rootId)
        .where('tenant_id', '=', tenantId)
        .where('status', '=', 'Running')
        .execute(),
    /** A whole tree by depth, then start; at most 200 rows. */
    tree: (tenantId: string, rootId: string): Promise<readonly RunRow[]> =>
      runsOf(tenantId)
        .selectAll()
        .where((eb) => eb.or([eb('id', '=', rootId), eb('root_run_id', '=', rootId)]))
        .orderBy('depth')
        .orderBy('started_at', (order) => order.asc().nullsFirst())
        .orderBy('id')
        .limit(maxTreeRows)
        .execute(),
    /** By run: the newest one that went on with it. */
    async continuations(tenantId: string, runIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
      if (runIds.length === 0) return new Map();
      const rows = await runsOf(tenantId)
        .select(['id', 'continued_from_run_id'])
        .where('continued_from_run_id', 'in', runIds)
        .orderBy('id')
        .execute();
      return new Map(rows.map(({ id, continued_from_run_id: source }) => [source ?? '', id]));
    },
    /** Every member of a tree, however many: by depth, then start. */
    async treeMembers(tenantId: string, rootId: string): Promise<readonly TreeMember[]> {
      const rows = await runsOf(tenantId)
        .select(['id', 'status', 'agent_name', 'agent_version', 'agent_saved_at', 'remote_task'])
        .where((eb) => eb.or([eb('id', '=', rootId), eb('root_run_id', '=', rootId)]))
        // Ids grow as runs are opened, and every run has one, while one that was canceled in line never started.
        .orderBy('depth')
        .orderBy('id')
        .execute();
      return rows.map((row) => ({
        id: row.id,
        status: row.status,
        agentName: row.agent_name,
        agentVersion: row.agent_version,
        agentSavedAt: row.agent_saved_at,
        isRemote: row.remote_task !== null,
      }));
    },
    /** Packs that hold events from the sequence `from` on, in order, at most `limit`. */
    async packs(tenantId: string, runId: string, from: number, limit: number) {
      const rows = await storage.db
        .selectFrom('run_events')
        .select(['run_id', 'first_sequence', 'last_sequence', 'events'])
        .where('run_id', '=', runId)
        .where('last_sequence', '>=', from)
        .orderBy('first_sequence')
        .limit(limit)
        .execute();
      return rows.map((row) => ({
        firstSequence: row.first_sequence,
        lastSequence: row.last_sequence,
        events: storage.rows.open('run_events', tenantId, row).events,
      }));
    },
    /** How far these runs of any tenant have come. */
    async heads(runIds: readonly string[]): Promise<ReadonlyMap<string, LogHead>> {
      const heads = new Map<string, LogHead>();
      for (let at = 0; at < runIds.length; at += headsPerQuery) {
        const rows = await storage.db
          .selectFrom('runs')
          .select(['id', 'status', lastOfLog])
          .where('id', 'in', runIds.slice(at, at + headsPerQuery))
          .execute();
        for (const { id, status, logged_to: last } of rows) heads.set(id, { status, lastSequence: last ?? -1 });
      }
      return heads;
    },
    async toolInvocations(tenantId: string, runId: string, limit: number): Promise<readonly ToolInvocationRow[]> {
      const rows = await settledCalls(tenantId, runId).selectAll().orderBy('settled_order').limit(limit).execute();
      return rows.map((row) => storage.rows.open('tool_invocations', tenantId, row));
    },
    /** The recorded input of a run, with what it was started with beside its messages; null when there is none. */
    async recordedInput(tenantId: string, runId: string): Promise<RecordedInput | null> {
      const stored = await storage.db
        .selectFrom('run_inputs')
        .select(['run_id', 'messages', 'context'])
        .where('run_id', '=', runId)
        .executeTakeFirst();
      if (stored === undefined) return null;
      const row = storage.rows.open('run_inputs', tenantId, stored);
      const context = row.context === null ? noContext : (JSON.parse(row.context) as RunInputContext);
      return { messages: JSON.parse(row.messages) as ChatMessage[], context };
    },
    /** What the model calls of a closed run were sent; null when it was not recorded. */
    async modelCalls(tenantId: string, runId: string): Promise<StoredModelCalls | null> {
      const row = await storage.db
        .selectFrom('run_model_calls')
        .select(['run_id', 'calls'])
        .where('run_id', '=', runId)
        .executeTakeFirst();
      if (row === undefined) return null;
      return JSON.parse(storage.rows.open('run_model_calls', tenantId, row).calls) as StoredModelCalls;
    },
    /** Output of a run whose log ends with its completion; null for every other. */
    async output(tenantId: string, runId: string): Promise<string | null> {
      const row = await storage.db
        .selectFrom('run_events')
        .select(['run_id', 'first_sequence', 'events'])
        .where('run_id', '=', runId)
        .orderBy('first_sequence', 'desc')
        .limit(1)
        .executeTakeFirst();
      if (row === undefined) return null;
      const { events } = storage.rows.open('run_events', tenantId, row);
      const entries = JSON.parse(events) as [string, number, Readonly<Record<string, unknown>>][];
      const [type, , members] = entries.at(-1) ?? ['', 0, {}];
      const output = type === 'run.completed' ? members['output'] : null;
      return typeof output === 'string' ? output : null;
    },
    /** Names of the tools whose calls settled, each once, by their first call. */
    async toolNames(tenantId: string, runId: string): Promise<readonly string[]> {
      const rows = await settledCalls(tenantId, runId)
        .select('tool_name')
        .groupBy('tool_name')
        // Ids grow in the order of calling.
        .orderBy((eb) => eb.fn.min('id'))
        .execute();
      return rows.map((row) => row.tool_name);
    },
    /** Calls that settled. */
    async countToolCalls(tenantId: string, runId: string): Promise<number> {
      const row = await settledCalls(tenantId, runId)
        .select((eb) => eb.fn.countAll<number | string>().as('count'))
        .executeTakeFirst();
      return Number(row?.count ?? 0);
    },
    /** Every run that is Queued or Running, of every tenant. */
    open: (): Promise<readonly RunRow[]> =>
      storage.db.selectFrom('runs').selectAll().where('status', 'in', ['Queued', 'Running']).execute(),
    async lastSequence(runId: string): Promise<number> {
      const row = await storage.db
        .selectFrom('run_events')
        .select((eb) => eb.fn.max('last_sequence').as('last'))
        .where('run_id', '=', runId)
        .executeTakeFirst();
      return row?.last ?? -1;
    },
    /** Forgets the signs of life of runs that do not execute any more. */
    async heartbeatsDropped(): Promise<void> {
      await storage.db
        .deleteFrom('run_heartbeats')
        .where(
          'run_id',
          'not in',
          storage.db.selectFrom('runs').select('id').where('status', 'in', ['Queued', 'Running']),
        )
        .execute();
    },
    /** Back in line: a Running row becomes Queued. */
    requeued: updateStatement(storage.db, 'runs', (tenantId: string, runId: string) => ({
      set: { status: 'Queued', started_at: null },
      where: { tenant_id: tenantId, id: runId, status: 'Running' },
    })),
    /** Closes an open row from outside its run; fails its unit when the row has another status meanwhile. */
    closeFrom: (row: Pick<RunRow, 'tenant_id' | 'id'>, fromStatus: string, values: Partial<RunRow>): Promise<void> => {
      const update = storage.db.updateTable('runs').set(values).where('tenant_id', '=', row.tenant_id);
      const query = update.where('id', '=', row.id).where('status', '=', fromStatus);
      return storage.write([statementOf(query, { mustChange: true })]);
    },
  };
});

export type RunStore = StoreOf<typeof runStore>;
