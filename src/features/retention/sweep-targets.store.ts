import { type AliasableExpression, type ExpressionBuilder, type ExpressionWrapper, type SqlBool, sql } from 'kysely';
import type { StoreHandle } from '../../db/define-store.ts';
import type { Tables } from '../../db/tables.ts';
import type { RetentionTarget } from './retention.schema.ts';

/** A unit as it is read: the members of a `SweepUnit`. */
export interface UnitRow {
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
  units(storage: StoreHandle, tenantId: string, at: UnitMoment): UnitQuery;
  /**
   * In which order units are read: by key where keys are made in the order of time, so that a sweep walks the primary
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
export const isOver = (eb: ExpressionBuilder<Tables, 'runs'>): ExpressionWrapper<Tables, 'runs', SqlBool> =>
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

/** A run that is not at work, and has an end from which its age counts. */
export const isClosed = (eb: ExpressionBuilder<Tables, 'runs'>): ExpressionWrapper<Tables, 'runs', SqlBool> =>
  eb.and([eb('runs.completed_at', 'is not', null), eb('runs.status', 'not in', ['Queued', 'Running'])]);

/** What may go of each target, whatever its age; a target that is missing has no rows in this version. */
export const targetQueries: Readonly<Partial<Record<RetentionTarget, TargetQuery>>> = {
  RunEvents: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('runs')
        .select(['runs.id as key', none.as('sub'), 'runs.completed_at as age', 'runs.event_count as rows'])
        .where('runs.tenant_id', '=', tenantId)
        .where(isClosed)
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
  WebhookDeliveries: {
    order: 'age',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('webhook_deliveries')
        .select(['id as key', none.as('sub'), 'delivered_at as age', one.as('rows')])
        .where('tenant_id', '=', tenantId)
        .where('status', '=', 'Delivered')
        .where('delivered_at', 'is not', null)
        .$castTo<UnitRow>(),
  },
  Spans: {
    order: 'key',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('run_traces')
        // The spans of a tree are one stored row.
        .select(['run_id as key', none.as('sub'), 'started_at as age', 'span_count as rows'])
        .where('tenant_id', '=', tenantId),
  },
  SkillScriptGrants: {
    order: 'age',
    units: ({ db }, tenantId, { now }) =>
      db
        .selectFrom('skill_script_grants')
        .select(['id as key', none.as('sub'), one.as('rows')])
        // The earlier one, or the only one.
        .select(
          sql<number>`case when revoked_at is null or expires_at < revoked_at then expires_at else revoked_at end`.as(
            'age',
          ),
        )
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
                .where('session_requests.kind', '=', 'Approval')
                // No run continues a pause in which every call has expired.
                .where(({ not, exists, selectFrom }) =>
                  not(
                    exists(
                      selectFrom('approval_handovers')
                        .select('approval_handovers.run_id')
                        .whereRef('approval_handovers.run_id', '=', 'session_requests.run_id')
                        .where('approval_handovers.state', '=', 'Lapsed'),
                    ),
                  ),
                ),
            ),
          ),
        ),
  },
  Conversations: {
    order: 'age',
    units: ({ db }, tenantId) =>
      db
        .selectFrom('openai_responses')
        .innerJoin('runs', (join) =>
          join.on('runs.tenant_id', '=', tenantId).onRef('runs.id', '=', 'openai_responses.run_id'),
        )
        .select(['openai_responses.id as key', sql<string>`'response'`.as('sub')])
        .select(['openai_responses.created_at as age', one.as('rows')])
        .where('openai_responses.tenant_id', '=', tenantId)
        .where(isClosed)
        .unionAll(
          db
            .selectFrom('openai_conversations')
            .leftJoin('sessions', (join) =>
              join
                .onRef('sessions.tenant_id', '=', 'openai_conversations.tenant_id')
                .onRef('sessions.id', '=', 'openai_conversations.id'),
            )
            .select(['openai_conversations.id as key', sql<string>`'conversation'`.as('sub')])
            // One that is spoken in is as old as what was said last.
            .select((eb) => [
              eb.fn.coalesce('sessions.updated_at', 'openai_conversations.created_at').as('age'),
              one.as('rows'),
            ])
            .where('openai_conversations.tenant_id', '=', tenantId),
        )
        .$castTo<UnitRow>(),
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
