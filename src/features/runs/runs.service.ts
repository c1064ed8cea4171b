import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { clampPaging } from '../../contract/schema.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';
import type { RunEngine } from '../../engine/lifecycle/index.ts';
import type { SessionAccess } from '../sessions/index.ts';
import type { CancelRun } from './cancel-run.ts';
import type { FollowedRuns } from './followed-runs.ts';
import type { RunAccess } from './run-access.ts';
import { runEventSource } from './run-event-source.ts';
import { toRunRecord } from './run-record.ts';
import type { createRunStart } from './run-start.service.ts';
import type { runOperations } from './runs.operations.ts';
import type { RunRecord, ToolInvocationRecord } from './runs.schema.ts';
import type { RunStore } from './runs.store.ts';

const maxToolRecords = 1000;

export interface RunServiceDeps {
  readonly authorization: RunAuthorization;
  readonly start: ReturnType<typeof createRunStart>;
  readonly store: RunStore;
  readonly access: RunAccess;
  readonly owners: Pick<SessionAccess, 'listOwner'>;
  readonly engine: RunEngine;
  readonly cancelRun: CancelRun;
  readonly followed: FollowedRuns;
}

/** Runs below `row` among the rows of its tree. */
const descendantsOf = (row: RunRow, tree: readonly RunRow[]): RunRow[] => {
  const below: RunRow[] = [];
  const parents = new Set([row.id]);
  // Parents start before their children, so one pass in id order finds every generation.
  for (const candidate of [...tree].sort((a, b) => (a.id < b.id ? -1 : 1)))
    if (candidate.parent_run_id !== null && parents.has(candidate.parent_run_id)) {
      parents.add(candidate.id);
      below.push(candidate);
    }
  return below;
};

const toInvocationRecord = (row: ToolInvocationRow): ToolInvocationRecord => ({
  id: row.id,
  runId: row.run_id,
  toolName: row.tool_name,
  toolCallId: row.tool_call_id,
  source: row.source,
  arguments: row.arguments,
  result: row.result,
  truncated: row.truncated === 1,
  error: row.error,
  succeeded: row.succeeded === 1,
  authorizationDenied: row.authorization_denied === 1,
  timedOut: row.timed_out === 1,
  durationMs: row.duration_ms,
  usage: row.usage === null ? null : (JSON.parse(row.usage) as ToolInvocationRecord['usage']),
  createdAt: isoTime(row.settled_at ?? row.created_at),
});

const finished = ({ id, status, kind }: RunRow): AcpError =>
  new AcpError(
    'run-finished',
    kind === 'External'
      ? `Run ${id} was executed by another program, which alone could have canceled it; it is closed with status ${status}.`
      : `Run ${id} is closed with status ${status}.`,
    { details: { runId: id } },
  );

const endsEarly: ReadonlySet<string> = new Set(['AwaitingApproval', 'AwaitingInput', 'Failed']);

export const runService = (
  deps: RunServiceDeps,
): Omit<Handlers<typeof runOperations>, 'input' | 'compare' | 'trace'> => {
  const { store } = deps;
  const { find } = deps.access;

  /** The current row of a run that was found and allowed before. */
  const reread = async (row: RunRow): Promise<RunRow> => (await store.get(row.tenant_id, row.id)) ?? row;

  const records = async (tenantId: string, rows: readonly RunRow[]): Promise<RunRecord[]> => {
    const roots = [...new Set(rows.filter((row) => row.child_run_count > 0).map((row) => row.root_run_id ?? row.id))];
    const members = await store.descendants(tenantId, roots);
    // A turn goes on in its session, and only when it did not come to its end.
    const cut = rows.filter(({ status, session_id }) => session_id !== null && endsEarly.has(status));
    const later = await store.continuations(
      tenantId,
      cut.map(({ id }) => id),
    );
    return rows.map((row) =>
      toRunRecord(row, row.child_run_count === 0 ? [] : descendantsOf(row, members), later.get(row.id) ?? null),
    );
  };

  const record = async (tenantId: string, row: RunRow): Promise<RunRecord> => {
    const [only] = await records(tenantId, [row]);
    if (only === undefined) throw new Error('A run has exactly one record.');
    return only;
  };

  return {
    start: deps.start,
    async list(context, { query }) {
      const { tenantId } = context;
      await deps.authorization.require(context, 'List', {
        resource: 'Run',
        agentName: query.agentName ?? null,
        sessionId: query.sessionId ?? null,
        userId: query.userId ?? null,
      });
      const { startedAfter, includeChildren, skip, take, status, ...exact } = query;
      const filter = {
        ...exact,
        ...(status === undefined ? {} : status === 'Continued' ? { continued: true } : { status }),
        ...clampPaging(query),
        ownerId: deps.owners.listOwner(context.principal),
        includeChildren: includeChildren ?? false,
        ...(startedAfter === undefined ? {} : { startedAfterMs: Date.parse(startedAfter) }),
      };
      return ok(await records(tenantId, await store.list(tenantId, filter)));
    },
    async get(context, { params }) {
      return ok(await record(context.tenantId, await find(context, params.runId)));
    },
    async tree(context, { params }) {
      const { tenantId } = context;
      const root = await deps.access.rootOf(context, params.runId);
      return ok(await records(tenantId, await store.tree(tenantId, root)));
    },
    async events(context, { params, headers }) {
      const row = await find(context, params.runId);
      const last = headers['last-event-id'];
      // A number past every log is past the end of this one.
      const from =
        last === undefined || last === null || last === ''
          ? 0
          : Math.min(Number(last), Number.MAX_SAFE_INTEGER - 1) + 1;
      // A log that cannot be read is an error now: a stream has no way to say it later than by its end.
      await store.packs(context.tenantId, row.id, from, 1);
      return {
        status: 200,
        stream: runEventSource(deps, context.tenantId, row.id, from),
        headers: { 'X-Run-Id': row.id },
      };
    },
    async cancel(context, { params }) {
      const { tenantId, principal } = context;
      const row = await find(context, params.runId, 'Cancel');
      const end = await deps.cancelRun(row, principal.actor);
      if (end === 'elsewhere')
        throw new AcpError('run-not-on-this-instance', `Run ${row.id} does not execute on this instance.`, {
          details: { runId: row.id },
        });
      const current = await reread(row);
      if (end === 'finished') throw finished(current);
      return { status: 202, body: await record(tenantId, current), headers: { 'X-Run-Id': row.id } };
    },
    async tools(context, { params }) {
      const row = await find(context, params.runId);
      return ok((await store.toolInvocations(context.tenantId, row.id, maxToolRecords)).map(toInvocationRecord));
    },
  };
};
