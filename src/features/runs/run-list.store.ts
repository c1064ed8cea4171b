import { expressionBuilder, type SqlBool } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import { type RunCondition, startedLate, startedSince } from '../../db/started-after.ts';
import type { RunRow, Tables } from '../../db/tables.ts';

export interface RunFilter {
  readonly agentName?: string;
  readonly status?: string;
  readonly kind?: string;
  readonly sessionId?: string;
  readonly errorType?: string;
  readonly userId?: string;
  /** Null: of every owner. */
  readonly ownerId: string | null;
  /** `key:value`, split at the first colon, or a bare key for every value. */
  readonly label?: string;
  readonly startedAfterMs?: number;
  /** True: only runs that another one went on with; false: no such run. */
  readonly continued?: boolean;
  readonly includeChildren: boolean;
  readonly parentRunId?: string;
  readonly rootRunId?: string;
  readonly skip: number;
  readonly take: number;
}

const roots: RunCondition = (eb) => eb.and([eb('runs.parent_run_id', 'is', null)]);
const children: RunCondition = (eb) => eb.and([eb('runs.parent_run_id', 'is not', null)]);

const exactColumns = [
  ['agentName', 'runs.agent_name'],
  ['status', 'runs.status'],
  ['kind', 'runs.kind'],
  ['sessionId', 'runs.session_id'],
  ['errorType', 'runs.error_type'],
  ['userId', 'runs.user_id'],
  ['ownerId', 'runs.owner_id'],
  ['parentRunId', 'runs.parent_run_id'],
] as const;

const filters =
  (tenantId: string, filter: RunFilter): RunCondition =>
  (eb) => {
    const conditions: ReturnType<RunCondition>[] = [];
    for (const [member, column] of exactColumns) {
      const value = filter[member];
      if (value !== undefined && value !== null) conditions.push(eb(column, '=', value));
    }
    // States what the index on the kind covers: the planner does not infer it.
    if (filter.kind !== undefined && filter.kind !== 'Agent') conditions.push(eb('runs.kind', '<>', 'Agent'));
    if (filter.continued !== undefined) {
      const sources = eb
        .selectFrom('runs as later')
        .select('later.continued_from_run_id')
        .where('later.tenant_id', '=', tenantId)
        .where('later.continued_from_run_id', 'is not', null);
      conditions.push(
        filter.continued
          ? eb('runs.id', 'in', sources)
          : eb.not(eb.exists(sources.whereRef('later.continued_from_run_id', '=', 'runs.id'))),
      );
    }
    if (filter.rootRunId !== undefined)
      conditions.push(eb.or([eb('runs.root_run_id', '=', filter.rootRunId), eb('runs.id', '=', filter.rootRunId)]));
    return eb.and(conditions);
  };

const matching = (conditions: readonly RunCondition[]) => {
  const eb = expressionBuilder<Tables, 'runs'>();
  return eb.and(conditions.map((condition) => condition(eb))).$castTo<SqlBool>();
};

const plain = ({ db }: StoreHandle, tenantId: string, conditions: readonly RunCondition[]) =>
  db.selectFrom('runs').selectAll('runs').where('runs.tenant_id', '=', tenantId).where(matching(conditions));

/** From the labels to the runs, newest first: a rare label costs no more than a common one. */
const labeled = ({ db }: StoreHandle, tenantId: string, label: string, conditions: readonly RunCondition[]) => {
  const colon = label.indexOf(':');
  const query = db
    .selectFrom('run_labels')
    .innerJoin('runs', (join) => join.onRef('runs.id', '=', 'run_labels.run_id').on('runs.tenant_id', '=', tenantId))
    .selectAll('runs')
    .where('run_labels.tenant_id', '=', tenantId)
    .where('run_labels.key', '=', colon < 0 ? label : label.slice(0, colon))
    .where(matching(conditions));
  return colon < 0 ? query : query.where('run_labels.value', '=', label.slice(colon + 1));
};

const page = async (
  storage: StoreHandle,
  tenantId: string,
  filter: RunFilter,
  conditions: readonly RunCondition[],
  skip: number,
  take: number,
): Promise<RunRow[]> => {
  if (filter.label !== undefined)
    return labeled(storage, tenantId, filter.label, conditions)
      .orderBy('run_labels.run_id', 'desc')
      .limit(take)
      .offset(skip)
      .execute();
  const everyGeneration = filter.includeChildren && filter.parentRunId === undefined && filter.rootRunId === undefined;
  if (everyGeneration && filter.agentName !== undefined)
    // Each arm walks its own index in order, and the two are merged without sorting.
    return plain(storage, tenantId, [...conditions, roots])
      .unionAll(plain(storage, tenantId, [...conditions, children]))
      .orderBy('id', 'desc')
      .limit(take)
      .offset(skip)
      .execute();
  return plain(storage, tenantId, conditions).orderBy('runs.id', 'desc').limit(take).offset(skip).execute();
};

const count = async (
  storage: StoreHandle,
  tenantId: string,
  filter: RunFilter,
  conditions: readonly RunCondition[],
): Promise<number> => {
  const rows =
    filter.label === undefined
      ? plain(storage, tenantId, conditions)
      : labeled(storage, tenantId, filter.label, conditions);
  const result = await storage.db
    .selectFrom(rows.as('matching'))
    .select((eb) => eb.fn.countAll<number | string>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(result.count);
};

/** Runs that match every filter, newest first. Each filter by itself is answered from an index, however many runs there are. */
export const listRuns = async (
  storage: StoreHandle,
  tenantId: string,
  filter: RunFilter,
): Promise<readonly RunRow[]> => {
  const rootsOnly = !filter.includeChildren && filter.parentRunId === undefined && filter.rootRunId === undefined;
  const base = rootsOnly ? [filters(tenantId, filter), roots] : [filters(tenantId, filter)];
  const { skip, take, startedAfterMs: after } = filter;
  if (after === undefined) return page(storage, tenantId, filter, base, skip, take);
  const since = [...base, startedSince(after)];
  const late = [...base, startedLate(after, tenantId)];
  const rows = await page(storage, tenantId, filter, since, skip, take);
  if (rows.length === take) return rows;
  // All ids of the second part are below those of the first.
  const before = skip === 0 ? rows.length : await count(storage, tenantId, filter, since);
  return [...rows, ...(await page(storage, tenantId, filter, late, Math.max(skip - before, 0), take - rows.length))];
};
