import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';

export interface RunFilter {
  readonly agentName?: string;
  readonly status?: string;
  readonly kind?: string;
  readonly sessionId?: string;
  readonly errorType?: string;
  readonly userId?: string;
  readonly label?: string;
  readonly startedAfterMs?: number;
  readonly includeChildren: boolean;
  readonly parentRunId?: string;
  readonly rootRunId?: string;
  readonly skip: number;
  readonly take: number;
}

// A tree is truncated at this many runs, as the tree operation promises; larger sums would only slow every listing.
const maxTreeRows = 200;

export interface RunStore {
  list(tenantId: string, filter: RunFilter): Promise<readonly RunRow[]>;
  get(tenantId: string, runId: string): Promise<RunRow | undefined>;
  /** All members of the trees of these roots, the roots left out. */
  descendants(tenantId: string, rootIds: readonly string[]): Promise<readonly RunRow[]>;
  /** A whole tree by depth, then start; at most 200 rows. */
  tree(tenantId: string, rootId: string): Promise<readonly RunRow[]>;
  /** Packs that hold events from the sequence `from` on, in order, at most `limit`. */
  packs(
    runId: string,
    from: number,
    limit: number,
  ): Promise<readonly { firstSequence: number; lastSequence: number; events: string }[]>;
  toolInvocations(tenantId: string, runId: string, limit: number): Promise<readonly ToolInvocationRow[]>;
  /** Every run that is Queued or Running, of every tenant. */
  open(): Promise<readonly RunRow[]>;
  lastSequence(runId: string): Promise<number>;
  /** Closes an open row from outside its run; fails its unit when the row has another status meanwhile. */
  closeFrom(row: Pick<RunRow, 'tenant_id' | 'id'>, fromStatus: string, values: Partial<RunRow>): Statement;
}

const listQuery = ({ db, dialect }: Storage, tenantId: string, filter: RunFilter) => {
  let query = db.selectFrom('runs').selectAll().where('tenant_id', '=', tenantId);
  if (filter.agentName !== undefined) query = query.where('agent_name', '=', filter.agentName);
  if (filter.status !== undefined) query = query.where('status', '=', filter.status);
  if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
  if (filter.sessionId !== undefined) query = query.where('session_id', '=', filter.sessionId);
  if (filter.errorType !== undefined) query = query.where('error_type', '=', filter.errorType);
  if (filter.userId !== undefined) query = query.where('user_id', '=', filter.userId);
  if (filter.label !== undefined) {
    // The first colon splits; a bare key matches every value.
    const colon = filter.label.indexOf(':');
    const member = dialect.jsonMember('labels', colon < 0 ? filter.label : filter.label.slice(0, colon));
    query = colon < 0 ? query.where(member, 'is not', null) : query.where(member, '=', filter.label.slice(colon + 1));
  }
  const after = filter.startedAfterMs;
  if (after !== undefined) query = query.where((eb) => eb(eb.fn.coalesce('started_at', 'created_at'), '>', after));
  if (filter.parentRunId !== undefined) query = query.where('parent_run_id', '=', filter.parentRunId);
  const root = filter.rootRunId;
  if (root !== undefined) query = query.where((eb) => eb.or([eb('root_run_id', '=', root), eb('id', '=', root)]));
  if (!filter.includeChildren && filter.parentRunId === undefined && root === undefined)
    query = query.where('parent_run_id', 'is', null);
  return query.orderBy('id', 'desc').limit(filter.take).offset(filter.skip);
};

export const createRunStore = (storage: Storage): RunStore => ({
  list: (tenantId, filter) => listQuery(storage, tenantId, filter).execute(),
  get: (tenantId, runId) =>
    storage.db
      .selectFrom('runs')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where('id', '=', runId)
      .executeTakeFirst(),
  async descendants(tenantId, rootIds) {
    if (rootIds.length === 0) return [];
    return storage.db
      .selectFrom('runs')
      .selectAll()
      .where('root_run_id', 'in', rootIds)
      .where('tenant_id', '=', tenantId)
      .limit(maxTreeRows * rootIds.length)
      .execute();
  },
  tree: (tenantId, rootId) =>
    storage.db
      .selectFrom('runs')
      .selectAll()
      .where('tenant_id', '=', tenantId)
      .where((eb) => eb.or([eb('id', '=', rootId), eb('root_run_id', '=', rootId)]))
      .orderBy('depth')
      .orderBy('started_at')
      .orderBy('id')
      .limit(maxTreeRows)
      .execute(),
  async packs(runId, from, limit) {
    const rows = await storage.db
      .selectFrom('run_events')
      .select(['first_sequence', 'last_sequence', 'events'])
      .where('run_id', '=', runId)
      .where('last_sequence', '>=', from)
      .orderBy('first_sequence')
      .limit(limit)
      .execute();
    return rows.map((row) => ({
      firstSequence: row.first_sequence,
      lastSequence: row.last_sequence,
      events: row.events,
    }));
  },
  toolInvocations: (tenantId, runId, limit) =>
    storage.db
      .selectFrom('tool_invocations')
      .selectAll()
      .where('run_id', '=', runId)
      .where('tenant_id', '=', tenantId)
      .where('state', '=', 'Settled')
      .orderBy('settled_order')
      .limit(limit)
      .execute(),
  open: () => storage.db.selectFrom('runs').selectAll().where('status', 'in', ['Queued', 'Running']).execute(),
  async lastSequence(runId) {
    const row = await storage.db
      .selectFrom('run_events')
      .select((eb) => eb.fn.max('last_sequence').as('last'))
      .where('run_id', '=', runId)
      .executeTakeFirst();
    return row?.last ?? -1;
  },
  closeFrom(row, fromStatus, values) {
    const { sql: text, parameters } = storage.db
      .updateTable('runs')
      .set(values)
      .where('tenant_id', '=', row.tenant_id)
      .where('id', '=', row.id)
      .where('status', '=', fromStatus)
      .compile();
    return { sql: text, parameters, mustChange: true };
  },
});
