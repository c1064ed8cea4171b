import { type AliasableExpression, type ExpressionBuilder, type ExpressionWrapper, type SqlBool, sql } from 'kysely';
import type { Storage } from '../../db/storage.ts';
import type { Tables } from '../../db/tables.ts';
import type { RetentionTarget } from './retention.schema.ts';

/** What goes together: a row, the log of a run, a tree of runs. */
export interface SweepUnit {
  readonly key: string;
  /** Second part of the key; empty where one is enough. */
  readonly sub: string;
  /** Epoch milliseconds from which its age counts. */
  readonly age: number;
  readonly rows: number;
}

/** What goes: older than `cutoff`, or not newer than `newestToGo` in the order of age and key. */
export interface SweepBound {
  readonly cutoff: number | null;
  readonly newestToGo: Omit<SweepUnit, 'rows'> | null;
}

export interface SweepUnits {
  /** Fixes what goes for the whole sweep. */
  bound(
    target: RetentionTarget,
    tenantId: string,
    rule: { cutoff: number | null; maxRows: number | null },
  ): Promise<SweepBound>;
  /** The next units behind one, oldest first; null: from the start. */
  next(
    target: RetentionTarget,
    tenantId: string,
    bound: SweepBound,
    behind: SweepUnit | null,
    limit: number,
  ): Promise<readonly SweepUnit[]>;
  /** How many rows go. */
  count(target: RetentionTarget, tenantId: string, bound: SweepBound): Promise<number>;
}

interface UnitRow {
  key: string;
  sub: string;
  age: number;
  rows: number;
}

type UnitQuery = AliasableExpression<UnitRow>;

interface UnitMoment {
  readonly now: number;
  /** Attachments that a run in line or in progress uses. */
  readonly usedAttachments: readonly string[];
}

interface TargetQuery {
  units(storage: Storage, tenantId: string, at: UnitMoment): UnitQuery;
  /**
   * In which order units are found: by key where keys are made in the order of time, so that a sweep walks the primary
   * key once; else by age.
   */
  readonly order: 'key' | 'age';
}

const none = sql<string>`''`;
const one = sql<number>`1`;
const ended = ['Completed', 'Failed', 'Canceled'];
const waiting = ['AwaitingInput', 'AwaitingApproval'];

/**
 * A run that nothing goes on from: ended, or paused with nothing open any more. A paused run keeps its status for good,
 * since what goes on is another run.
 */
const isOver = (eb: ExpressionBuilder<Tables, 'runs'>): ExpressionWrapper<Tables, 'runs', SqlBool> =>
  eb.or([
    eb('runs.status', 'in', ended),
    eb.and([
      eb('runs.status', 'in', waiting),
      eb.not(
        eb.exists(
          eb
            .selectFrom('session_requests')
            .select('session_requests.id')
            .whereRef('session_requests.tenant_id', '=', 'runs.tenant_id')
            .whereRef('session_requests.session_id', '=', 'runs.session_id')
            .whereRef('session_requests.run_id', '=', 'runs.id')
            .where('session_requests.state', '=', 'Open'),
        ),
      ),
    ]),
  ]);

const queries: Readonly<Partial<Record<RetentionTarget, TargetQuery>>> = {
  RunEvents: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('runs')
        .select(['runs.id as key', none.as('sub'), 'runs.completed_at as age', 'runs.event_count as rows'])
        .where('runs.tenant_id', '=', tenantId)
        .where('runs.completed_at', 'is not', null)
        .where('runs.status', 'not in', ['Queued', 'Running'])
        .where(({ exists, selectFrom }) =>
          exists(
            selectFrom('run_events').select('run_events.first_sequence').whereRef('run_events.run_id', '=', 'runs.id'),
          ),
        )
        .$castTo<UnitRow>(),
  },
  RunInputs: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('runs')
        .innerJoin('run_inputs', 'run_inputs.run_id', 'runs.id')
        .select(['runs.id as key', none.as('sub'), 'runs.created_at as age', one.as('rows')])
        .where('runs.tenant_id', '=', tenantId)
        .where(isOver),
  },
  ToolInvocations: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('tool_invocations')
        .innerJoin('runs', (join) =>
          join.on('runs.tenant_id', '=', tenantId).onRef('runs.id', '=', 'tool_invocations.run_id'),
        )
        .select(['tool_invocations.run_id as key', 'tool_invocations.id as sub'])
        .select(['tool_invocations.created_at as age', one.as('rows')])
        .where(isOver),
  },
  Jobs: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('jobs')
        .select(['jobs.id as key', none.as('sub'), 'jobs.completed_at as age', one.as('rows')])
        .where('jobs.tenant_id', '=', tenantId)
        .where('jobs.status', 'in', ended)
        .where('jobs.completed_at', 'is not', null)
        .$castTo<UnitRow>(),
  },
  Spans: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('run_traces')
        .select(['run_id as key', none.as('sub'), 'started_at as age'])
        // The spans of a tree are one stored row.
        .select(sql<number>`json_array_length(spans)`.as('rows'))
        .where('tenant_id', '=', tenantId),
  },
  SkillScriptGrants: {
    order: 'age',
    units: ({ db }, tenantId, { now }) =>
      db
        .selectFrom('skill_script_grants')
        .select(['id as key', none.as('sub'), one.as('rows')])
        // Of a single argument SQLite's min would be the aggregate; with two it is the smaller, and null when one is.
        .select(sql<number>`min(coalesce(revoked_at, expires_at), coalesce(expires_at, revoked_at))`.as('age'))
        .where('tenant_id', '=', tenantId)
        .where((eb) => eb.or([eb('revoked_at', '<=', now), eb('expires_at', '<=', now)])),
  },
  Attachments: {
    order: 'key',
    units: ({ db }, tenantId, { usedAttachments }) =>
      db
        .selectFrom('attachments')
        .select(['attachments.id as key', none.as('sub'), 'attachments.created_at as age', one.as('rows')])
        .where('attachments.tenant_id', '=', tenantId)
        .$if(usedAttachments.length > 0, (query) => query.where('attachments.id', 'not in', usedAttachments))
        .where((eb) =>
          eb.or([
            eb('attachments.session_id', 'is', null),
            eb.not(
              eb.exists(
                eb
                  .selectFrom('sessions')
                  .select('sessions.id')
                  .whereRef('sessions.tenant_id', '=', 'attachments.tenant_id')
                  .whereRef('sessions.id', '=', 'attachments.session_id'),
              ),
            ),
          ]),
        ),
  },
  Sessions: {
    order: 'age',
    units: ({ db }, tenantId, { now }) =>
      db
        .selectFrom('sessions')
        .select(['sessions.id as key', none.as('sub'), 'sessions.updated_at as age', one.as('rows')])
        .where('sessions.tenant_id', '=', tenantId)
        .where('sessions.version', '>', 0)
        .where((eb) => eb.or([eb('sessions.active_run_id', 'is', null), eb('sessions.lock_until', '<', now)]))
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('runs')
                .select('runs.id')
                .whereRef('runs.tenant_id', '=', 'sessions.tenant_id')
                .whereRef('runs.session_id', '=', 'sessions.id')
                .where('runs.status', 'in', ['Queued', 'Running']),
            ),
          ),
        )
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('session_requests')
                .select('session_requests.id')
                .whereRef('session_requests.tenant_id', '=', 'sessions.tenant_id')
                .whereRef('session_requests.session_id', '=', 'sessions.id')
                .where('session_requests.state', '=', 'Open')
                .where('session_requests.kind', '=', 'Approval'),
            ),
          ),
        ),
  },
  IdempotencyKeys: {
    order: 'age',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('idempotency_keys')
        .select(['key', none.as('sub'), 'created_at as age', one.as('rows')])
        .where('tenant_id', '=', tenantId)
        .where('status', 'is not', null),
  },
  RunScores: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('run_scores')
        .select(['run_id as key', 'id as sub', 'created_at as age', one.as('rows')])
        .where('tenant_id', '=', tenantId),
  },
  Runs: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('runs')
        .select(['runs.id as key', none.as('sub'), 'runs.completed_at as age'])
        .select((eb) => [
          sql<number>`1 + (${eb
            .selectFrom('runs as below')
            .select(sql<number>`count(*)`.as('count'))
            .whereRef('below.root_run_id', '=', 'runs.id')
            .whereRef('below.id', '<>', 'runs.id')})`.as('rows'),
        ])
        .where('runs.tenant_id', '=', tenantId)
        .where('runs.parent_run_id', 'is', null)
        .where('runs.completed_at', 'is not', null)
        .where(isOver)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom('runs as below')
                .select('below.id')
                .whereRef('below.root_run_id', '=', 'runs.id')
                .where('below.status', 'in', ['Queued', 'Running']),
            ),
          ),
        )
        .$castTo<UnitRow>(),
  },
};

const isPast = (eb: ExpressionBuilder<{ unit: UnitRow }, 'unit'>, { cutoff, newestToGo: last }: SweepBound) =>
  eb.or([
    ...(cutoff === null ? [] : [eb('age', '<', cutoff)]),
    ...(last === null
      ? []
      : [
          eb('age', '<', last.age),
          eb.and([eb('age', '=', last.age), eb('key', '<', last.key)]),
          eb.and([eb('age', '=', last.age), eb('key', '=', last.key), eb('sub', '<=', last.sub)]),
        ]),
  ]);

const nothing: SweepBound = { cutoff: null, newestToGo: null };
const isNothing = ({ cutoff, newestToGo }: SweepBound): boolean => cutoff === null && newestToGo === null;

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Ids that runs in line or in progress name in what they were given: those of attachments are among them. */
const usedByOpenRuns = async ({ db }: Storage, tenantId: string): Promise<readonly string[]> => {
  const open = db
    .selectFrom('runs')
    .where('runs.tenant_id', '=', tenantId)
    .where('runs.status', 'in', ['Queued', 'Running']);
  const inputs = await open
    .innerJoin('run_inputs', 'run_inputs.run_id', 'runs.id')
    .select('run_inputs.messages as text')
    .execute();
  const payloads = await open.innerJoin('jobs', 'jobs.id', 'runs.job_id').select('jobs.payload as text').execute();
  const named = new Set([...inputs, ...payloads].flatMap(({ text }) => text?.match(uuid) ?? []));
  if (named.size === 0) return [];
  const rows = await db
    .selectFrom('attachments')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', 'in', [...named])
    .execute();
  return rows.map(({ id }) => id);
};

/** Finds what a policy removes, in the thread that scans: the event loop only gets the keys. */
export const createSweepUnits = (storage: Storage, now: () => number): SweepUnits => {
  const unitsOf = async (target: RetentionTarget, tenantId: string) => {
    const query = queries[target];
    if (query === undefined) return null;
    const usedAttachments = target === 'Attachments' ? await usedByOpenRuns(storage, tenantId) : [];
    const units = query.units(storage, tenantId, { now: now(), usedAttachments });
    return { order: query.order, units: units.as('unit') };
  };

  return {
    async bound(target, tenantId, { cutoff, maxRows }) {
      if (maxRows === null) return { cutoff, newestToGo: null };
      const found = await unitsOf(target, tenantId);
      if (found === null) return nothing;
      const sums = storage.db
        .selectFrom(found.units)
        .select(['key', 'sub', 'age'])
        .select(sql<number>`sum("rows") over (order by age desc, key desc, sub desc)`.as('total'));
      const [newestToGo] = await storage.scan(
        storage.db
          .selectFrom(sums.as('sums'))
          .select(['key', 'sub', 'age'])
          .where('total', '>', maxRows)
          .orderBy('age', 'desc')
          .orderBy('key', 'desc')
          .orderBy('sub', 'desc')
          .limit(1),
      );
      return { cutoff, newestToGo: newestToGo ?? null };
    },

    async next(target, tenantId, bound, behind, limit) {
      const found = isNothing(bound) ? null : await unitsOf(target, tenantId);
      if (found === null) return [];
      let query = storage.db
        .selectFrom(found.units)
        .select(['key', 'sub', 'age', 'rows'])
        .where((eb) => isPast(eb, bound))
        .limit(limit);
      // The first comparison of each pair is what an index can use.
      if (found.order === 'key') {
        if (behind !== null)
          query = query
            .where('key', '>=', behind.key)
            .where((eb) => eb.or([eb('key', '>', behind.key), eb('sub', '>', behind.sub)]));
        return storage.scan(query.orderBy('key').orderBy('sub'));
      }
      if (behind !== null)
        query = query
          .where('age', '>=', behind.age)
          .where((eb) => eb.or([eb('age', '>', behind.age), eb('key', '>', behind.key)]));
      return storage.scan(query.orderBy('age').orderBy('key'));
    },

    async count(target, tenantId, bound) {
      const found = isNothing(bound) ? null : await unitsOf(target, tenantId);
      if (found === null) return 0;
      const [row] = await storage.scan(
        storage.db
          .selectFrom(found.units)
          .select(sql<number>`coalesce(sum("rows"), 0)`.as('total'))
          .where((eb) => isPast(eb, bound)),
      );
      return Number(row?.total ?? 0);
    },
  };
};
