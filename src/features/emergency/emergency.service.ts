import { AcpError, invalidField } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import type { AuditedCall, CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import { endsWithin } from '../../core/time-limit.ts';
import type { EmergencyStopRow, ToolInvocationRow } from '../../db/tables.ts';
import type { ActiveRun } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import type { AuditLog, ChangedEntity } from '../audit/index.ts';
import type { FlowPlaces } from '../jobs/index.ts';
import type { emergencyOperations } from './emergency.operations.ts';
import type { EmergencyEffect, EmergencyResumeRequest, EmergencyStop, StoppedRun } from './emergency.schema.ts';
import { type EmergencyStore, emergencyStore, type StopTarget } from './emergency.store.ts';
import { covers, type StopsInForce } from './stop-switch.ts';
import { cancelCovered } from './stopped-runs.ts';

export interface EmergencyDeps {
  readonly store: EmergencyStore;
  readonly stops: StopsInForce;
  readonly engine: Pick<LiveRuns, 'list' | 'cancel'>;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly defaultTenantId: string;
  /** Of the jobs that run agents. */
  readonly runHandlerKeys: readonly string[];
  readonly places: Pick<FlowPlaces, 'resumed'>;
  /** Has the worker look for the jobs that were held. */
  wake(dueAt: number): void;
  readonly now: () => number;
  readonly newId: () => string;
}

// How long the answer waits for runs to end; one that ignores its signal is reported as still running.
const endingMs = 5000;

const orNull = (text: string): string | null => (text === '' ? null : text);

const view = (row: EmergencyStopRow): EmergencyStop => ({
  id: row.id,
  scope: row.scope as EmergencyStop['scope'],
  tenantId: orNull(row.tenant_id),
  agentName: orNull(row.agent_name),
  requestedByTenant: row.requested_by_tenant,
  reason: row.reason,
  stoppedBy: row.stopped_by,
  stoppedAt: isoTime(row.stopped_at),
  resumedBy: row.resumed_by,
  resumedAt: isoTimeOrNull(row.resumed_at),
});

/** The members have to say the same as the scope: a stop must not be wider or narrower than its caller believes. */
const assertOneWidth = ({ scope, tenantId = null, agentName = null }: EmergencyResumeRequest): void => {
  if (agentName !== null && scope !== 'Agent') throw invalidField('agentName', 'is only for the scope Agent');
  if (agentName === null && scope === 'Agent') throw invalidField('agentName', 'is required for the scope Agent');
  if (tenantId !== null && scope === 'All') throw invalidField('tenantId', 'is not for the scope All');
};

/** What is known of a call whose run was stopped at a time. */
const effectOf = (row: ToolInvocationRow, stoppedAt: number): EmergencyEffect => {
  // A tool that was too late has not answered, and may still do what it was asked for.
  const failed = row.timed_out === 0 && row.settled_at !== null && row.settled_at < stoppedAt;
  const answered = row.state === 'Settled' && (row.succeeded === 1 || failed);
  return {
    toolCallId: row.tool_call_id,
    toolName: row.tool_name,
    effect: row.effect,
    state: answered ? (row.succeeded === 1 ? 'Landed' : 'Failed') : 'Unknown',
    calledAt: isoTime(row.created_at),
  };
};

export const emergencyService = (deps: EmergencyDeps): Handlers<typeof emergencyOperations> => {
  const { store, stops, engine, audit, defaultTenantId } = deps;

  /** What the caller may stop: everything in the default tenant, elsewhere only the tenant's own agents. */
  const targetOf = ({ tenantId }: CallContext, body: EmergencyResumeRequest): StopTarget => {
    assertOneWidth(body);
    const named = body.tenantId ?? null;
    const agentName = body.agentName ?? null;
    if (body.scope === 'All') {
      if (tenantId !== defaultTenantId)
        throw new AcpError('tenant-rejected', 'Only a caller in the default tenant may stop or resume every tenant.');
      return { tenantId: '', agentName: '' };
    }
    if (named !== null && named !== tenantId && tenantId !== defaultTenantId)
      throw new AcpError('not-found', `There is no tenant "${named}".`);
    return { tenantId: named ?? tenantId, agentName: agentName ?? '' };
  };

  const changed = (
    { tenantId }: CallContext,
    row: EmergencyStopRow,
    states: Pick<ChangedEntity, 'before' | 'after'>,
  ): ChangedEntity => ({ id: row.id, aboutTenant: row.tenant_id === '' ? tenantId : row.tenant_id, ...states });

  const isSame = (row: EmergencyStopRow, target: StopTarget): boolean =>
    row.tenant_id === target.tenantId && row.agent_name === target.agentName;

  /** Stops that are being written: whoever asks for the same one meanwhile waits for the same result. */
  const writing = new Map<string, Promise<void>>();

  /** Written with its audit entry or not at all; in force from the first moment, so that nothing starts meanwhile. */
  const putInForce = async (context: CallContext & AuditedCall, row: EmergencyStopRow): Promise<void> => {
    stops.begin(row);
    const after = view(row);
    const written = audit.change(context, async (stores, tell) => {
      await stores(emergencyStore).insert(row);
      tell(changed(context, row, { before: null, after }));
    });
    writing.set(row.id, written);
    try {
      await written;
      stops.add(row);
    } catch (error) {
      stops.remove(row.id);
      throw error;
    } finally {
      writing.delete(row.id);
    }
  };

  const allEnded = async (runs: readonly ActiveRun[]): Promise<ReadonlySet<ActiveRun>> => {
    const ended = new Set<ActiveRun>();
    await endsWithin(endingMs, Promise.all(runs.map((run) => run.done.then(() => ended.add(run)))));
    return ended;
  };

  const told = async (runs: readonly ActiveRun[], stoppedAt: number): Promise<StoppedRun[]> => {
    const ended = await allEnded(runs);
    const calls = await store.effects(runs.map(({ id }) => id));
    return runs.map((run) => ({
      runId: run.id,
      rootRunId: run.rootId,
      tenantId: run.plan.tenantId,
      agentName: run.plan.agent.name,
      sessionId: run.session?.sessionId ?? run.plan.sessionId,
      ended: ended.has(run),
      effects: calls.filter((row) => row.run_id === run.id).map((row) => effectOf(row, stoppedAt)),
    }));
  };

  return {
    async status({ tenantId }) {
      const isHost = tenantId === defaultTenantId;
      await stops.refresh();
      const rows = stops.list().filter((row) => isHost || row.tenant_id === '' || row.tenant_id === tenantId);
      return ok(rows.map(view));
    },

    async stop(context, { body }) {
      const { tenantId, principal } = context;
      const target = targetOf(context, body);
      const stoppedAt = deps.now();
      await stops.refresh();
      const standing = stops.list().find((row) => isSame(row, target) && row.requested_by_tenant === tenantId);
      const row: EmergencyStopRow = standing ?? {
        id: deps.newId(),
        scope: body.scope,
        tenant_id: target.tenantId,
        agent_name: target.agentName,
        requested_by_tenant: tenantId,
        reason: body.reason ?? null,
        stopped_by: principal.actor,
        stopped_at: stoppedAt,
        resumed_by: null,
        resumed_at: null,
      };
      await (standing === undefined ? putInForce(context, row) : writing.get(standing.id));
      const runs = cancelCovered(engine, row, principal.actor);
      const [stopped, held] = await Promise.all([told(runs, stoppedAt), store.held(target)]);
      return ok({
        stop: view(row),
        runs: stopped,
        heldCount: held.count,
        held: held.oldest.map((run) => ({
          runId: run.id,
          tenantId: run.tenant_id,
          agentName: run.agent_name,
          createdAt: isoTime(run.created_at),
        })),
      });
    },

    async resume(context, { body }) {
      const { tenantId, principal } = context;
      const target = targetOf(context, body);
      await stops.refresh();
      const own = stops
        .list()
        .filter((row) => isSame(row, target))
        .filter((row) => tenantId === defaultTenantId || row.requested_by_tenant === tenantId);
      if (own.length === 0) throw new AcpError('not-found', 'There is no such stop that the caller could end.');
      const at = deps.now();
      const resumed: EmergencyStop[] = [];
      for (const row of own) {
        const after = view({ ...row, resumed_by: principal.actor, resumed_at: at });
        await audit.change(context, async (stores, tell) => {
          // Somebody else may have ended it in the same moment.
          if (await stores(emergencyStore).resume(row.id, principal.actor, at))
            tell(changed(context, row, { before: view(row), after }));
        });
        stops.remove(row.id);
        resumed.push(after);
      }
      await store.makeDue(target, deps.runHandlerKeys, at);
      await deps.places.resumed(target, deps.runHandlerKeys);
      deps.wake(at);
      const inForce = stops.list().filter((row) => covers(row, target.tenantId, target.agentName));
      return ok({ resumed, inForce: inForce.map(view) });
    },
  };
};
