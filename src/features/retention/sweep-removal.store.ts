import { defineStore, type StoreHandle, type StoreOf } from '../../db/define-store.ts';
import type { Statement } from '../../db/statement.ts';
import type { Tables } from '../../db/tables.ts';
import type { RetentionTarget } from './retention.schema.ts';
import type { SweepUnit } from './sweep-units.store.ts';

/** A part of a unit that goes in one transaction. */
export interface SweepPiece {
  readonly statements: readonly Statement[];
  readonly rows: number;
}

// A long log goes in stretches of so many events, its end first: what is left reads from 0 without a gap. A transaction
// has as many stretches as the ones before say that fit: a long one among short ones must not be much longer.
const eventsAtOnce = 100;

type PiecesOf = (tenantId: string, unit: SweepUnit) => SweepPiece[] | Promise<SweepPiece[]>;
type Column<T extends keyof Tables> = keyof Tables[T] & string;

/** `delete from table where a = ? and …`, compiled once. */
const deletion = <T extends keyof Tables>(storage: StoreHandle, table: T, columns: readonly Column<T>[]) => {
  const { sql } = storage.db
    .deleteFrom(table as 'jobs')
    .where((eb) => eb.and(columns.map((column) => eb(column as 'id', '=', ''))))
    .compile();
  return (...values: readonly (string | number)[]): Statement => ({ sql, parameters: values });
};

export const sweepRemoval = defineStore((storage) => {
  const { sql: logSql } = storage.db
    .deleteFrom('run_events')
    .where('run_id', '=', '')
    .where('first_sequence', '>=', 0)
    .compile();
  const remove = {
    input: deletion(storage, 'run_inputs', ['run_id']),
    modelCalls: deletion(storage, 'run_model_calls', ['run_id']),
    invocation: deletion(storage, 'tool_invocations', ['run_id', 'id']),
    trace: deletion(storage, 'run_traces', ['run_id']),
    job: deletion(storage, 'jobs', ['id']),
    delivery: deletion(storage, 'webhook_deliveries', ['id', 'status']),
    jobItems: deletion(storage, 'job_items', ['job_id']),
    grant: deletion(storage, 'skill_script_grants', ['id']),
    key: deletion(storage, 'idempotency_keys', ['tenant_id', 'key']),
    response: deletion(storage, 'openai_responses', ['tenant_id', 'id']),
    conversation: deletion(storage, 'openai_conversations', ['tenant_id', 'id']),
    score: deletion(storage, 'run_scores', ['tenant_id', 'run_id', 'id']),
    run: deletion(storage, 'runs', ['tenant_id', 'id']),
    label: deletion(storage, 'run_labels', ['tenant_id', 'key', 'value', 'run_id']),
    request: deletion(storage, 'session_requests', ['tenant_id', 'session_id', 'run_id']),
    scores: deletion(storage, 'run_scores', ['tenant_id', 'run_id']),
    files: deletion(storage, 'agent_files', ['tenant_id', 'owner']),
    state: deletion(storage, 'agent_states', ['tenant_id', 'owner']),
  };
  // What hangs on a run by its id alone.
  const ofRun = (
    [
      'run_inputs',
      'run_steps',
      'run_heartbeats',
      'run_model_calls',
      'tool_invocations',
      'approvals',
      'run_traces',
      'openai_responses',
    ] as const
  ).map((table) => deletion(storage, table, ['run_id']));
  const handover = deletion(storage, 'approval_handovers', ['run_id']);

  const log = (runId: string, events: number): SweepPiece[] => {
    const pieces: SweepPiece[] = [];
    for (let from = Math.floor(Math.max(events - 1, 0) / eventsAtOnce) * eventsAtOnce; from >= 0; from -= eventsAtOnce)
      pieces.push({
        statements: [{ sql: logSql, parameters: [runId, from] }],
        rows: Math.min(eventsAtOnce, events - from),
      });
    return pieces;
  };

  const tree = async (tenantId: string, rootId: string): Promise<SweepPiece[]> => {
    // Hundreds of trees are looked up in a row, which on this connection would be one turn of the event loop.
    const runs = await storage.scan(
      storage.db
        .selectFrom('runs')
        .select(['id', 'session_id', 'labels', 'event_count'])
        .where('tenant_id', '=', tenantId)
        .where((eb) => eb.or([eb('id', '=', rootId), eb('root_run_id', '=', rootId)]))
        .orderBy('id', 'desc'),
    );
    // The root goes last: until then the tree is found again.
    return runs.flatMap(({ id, session_id: sessionId, labels, event_count: events }) => [
      ...log(id, events).map((piece) => ({ ...piece, rows: 0 })),
      {
        statements: [
          ...ofRun.map((statement) => statement(id)),
          handover(id),
          remove.scores(tenantId, id),
          remove.files(tenantId, `run:${id}`),
          remove.state(tenantId, `run:${id}`),
          ...(sessionId === null ? [] : [remove.request(tenantId, sessionId, id)]),
          ...Object.entries(JSON.parse(labels ?? '{}') as Record<string, string>).map(([key, value]) =>
            remove.label(tenantId, key, value, id),
          ),
          remove.run(tenantId, id),
        ],
        rows: 1,
      },
    ]);
  };

  const single = (statement: Statement): SweepPiece[] => [{ statements: [statement], rows: 1 }];

  const piecesOf: Readonly<Partial<Record<RetentionTarget, PiecesOf>>> = {
    RunEvents: (_tenantId, { key, rows }) => log(key, rows),
    // What was kept beside the input says parts of it, and serves nothing without it.
    RunInputs: (_tenantId, { key }) => [{ statements: [remove.input(key), remove.modelCalls(key)], rows: 1 }],
    ToolInvocations: (_tenantId, { key, sub }) => single(remove.invocation(key, sub)),
    Spans: (_tenantId, { key, rows }) => [{ statements: [remove.trace(key)], rows }],
    Jobs: (_tenantId, { key }) => [{ statements: [remove.jobItems(key), remove.job(key)], rows: 1 }],
    // One that is sent again meanwhile stays.
    WebhookDeliveries: (_tenantId, { key }) => single(remove.delivery(key, 'Delivered')),
    SkillScriptGrants: (_tenantId, { key }) => single(remove.grant(key)),
    Conversations: (tenantId, { key, sub }) =>
      single(sub === 'response' ? remove.response(tenantId, key) : remove.conversation(tenantId, key)),
    IdempotencyKeys: (tenantId, { key }) => single(remove.key(tenantId, key)),
    RunScores: (tenantId, { key, sub }) => single(remove.score(tenantId, key, sub)),
    Runs: (tenantId, { key }) => tree(tenantId, key),
  };

  return {
    remove: (pieces: readonly SweepPiece[]): Promise<void> =>
      storage.write(pieces.flatMap(({ statements }) => statements)),
    /** What deletes a unit, in the order in which it has to happen. */
    async pieces(target: RetentionTarget, tenantId: string, unit: SweepUnit): Promise<readonly SweepPiece[]> {
      const pieces = piecesOf[target]?.(tenantId, unit);
      if (pieces === undefined) throw new Error(`Rows of ${target} are not deleted by statements.`);
      return pieces;
    },

    /** Clears the arguments of some settled approvals of the age, in the order of ids; the last one, null: none is left. */
    async clearApprovals(tenantId: string, cutoff: number, behindId: string, limit: number): Promise<string | null> {
      // Where all are cleared already, nothing ends the search before the last one: it is no work for the event loop.
      const settled = await storage.scan(
        storage.db
          .selectFrom('approvals')
          .select('approvals.id')
          .where('approvals.tenant_id', '=', tenantId)
          .where('approvals.id', '>', behindId)
          .where('approvals.status', '<>', 'Pending')
          .where('approvals.created_at', '<', cutoff)
          .where('approvals.arguments', 'is not', null)
          // A paused run that nothing has gone on from yet still needs them.
          .where(({ not, exists, selectFrom }) =>
            not(
              exists(
                selectFrom('session_requests')
                  .select('session_requests.id')
                  .whereRef('session_requests.tenant_id', '=', 'approvals.tenant_id')
                  .whereRef('session_requests.session_id', '=', 'approvals.session_id')
                  .whereRef('session_requests.run_id', '=', 'approvals.run_id')
                  .where('session_requests.state', '=', 'Open'),
              ),
            ),
          )
          .orderBy('approvals.id')
          .limit(limit),
      );
      const last = settled.at(-1);
      if (last === undefined) return null;
      await storage.db
        .updateTable('approvals')
        .set({ arguments: null })
        .where('tenant_id', '=', tenantId)
        .where(
          'id',
          'in',
          settled.map(({ id }) => id),
        )
        .execute();
      return last.id;
    },
  };
});

export type SweepRemoval = StoreOf<typeof sweepRemoval>;
