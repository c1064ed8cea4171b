import { AcpError } from '../../contract/errors.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext } from '../../core/context.ts';
import type { RunRow } from '../../db/tables.ts';
import type { ActiveRun } from '../../engine/active-run.ts';
import type { TreeLimits } from '../../engine/control/index.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { type CancelRun, type Launch, type RunRecords, runTarget } from '../runs/index.ts';
import type { SessionStore } from '../sessions/index.ts';
import { throughDoor } from './doors.ts';

export interface ExposedRunsDeps {
  /** The protocol, as runs have it in their label `source`. */
  readonly source: string;
  readonly limits: TreeLimits;
  readonly launch: Pick<Launch, 'enter' | 'start'>;
  readonly engine: Pick<LiveRuns, 'active' | 'cancel'>;
  readonly records: Pick<RunRecords, 'get' | 'output' | 'heads'>;
  readonly sessions: Pick<SessionStore, 'get'>;
  readonly cancelRun: CancelRun;
  readonly authorization: RunAuthorization;
}

/** What another system asks an agent for. */
export interface ExposedRequest {
  readonly agentName: string;
  readonly body: Pick<AgentRunRequest, 'message' | 'sessionId' | 'parameters' | 'documents' | 'attachmentIds'>;
  /** Whether its caller follows the answer in parts. */
  readonly isStreaming: boolean;
  /** Called with the id of the run before it begins; what it throws leaves it unmade. */
  readonly reserve?: (runId: string) => Promise<void>;
}

/** Root runs that other systems start through a protocol, and what each of them sees of them. */
export const createExposedRuns = (deps: ExposedRunsDeps) => {
  const { source } = deps;

  /** Throws `session-not-owned` for a session that is neither new nor the caller's own here: every such one is refused alike. */
  const assertOwnSession = async (context: CallContext, sessionId: string, agentName: string): Promise<void> => {
    const row = await deps.sessions.get(context.tenantId, sessionId);
    const { door } = throughDoor(source, context);
    if (row === undefined || (row.door === door.key && row.agent_name === agentName)) return;
    throw new AcpError('session-not-owned', `Session "${sessionId}" is not one that you have opened here.`);
  };

  /** Undefined for every run that this caller did not start through this protocol. */
  const own = async (context: CallContext, runId: string): Promise<RunRow | undefined> => {
    const row = await deps.records.get(context.tenantId, runId.toLowerCase());
    return row?.door === throughDoor(source, context).door.key ? row : undefined;
  };

  /** The same for one that the host refuses the caller, so that nobody knows the reason. */
  const find = async (
    context: CallContext,
    runId: string,
    action: 'Read' | 'Cancel' = 'Read',
  ): Promise<RunRow | undefined> => {
    const row = await own(context, runId);
    return row !== undefined && (await deps.authorization.allows(context, action, runTarget(row))) ? row : undefined;
  };

  return {
    /**
     * Starts a run once the host and its quotas allow it. Throws `session-not-owned` for a session that is neither new nor
     * the caller's own here, and what every start of a run throws.
     */
    async start(context: CallContext, { agentName, body, isStreaming, reserve }: ExposedRequest): Promise<ActiveRun> {
      const sessionId = body.sessionId ?? null;
      if (sessionId !== null) await assertOwnSession(context, sessionId, agentName);
      const { door: _door, ...called } = throughDoor(source, context);
      const entrance = await deps.launch.enter({
        kind: 'request',
        context: { ...called, rawBody: null, readBody: undefined },
        agentName,
        body,
        isStreaming,
        target: { sessionId },
        work: null,
        exposed: { limits: deps.limits, labels: { source }, ...(reserve === undefined ? {} : { reserve }) },
      });
      return deps.launch.start(entrance);
    },
    own,
    find,
    /** Refuses with 403 `run-not-allowed`: a list is never a shorter one. */
    requireList: (context: CallContext, agentName: string, sessionId: string | null): Promise<void> | null =>
      deps.authorization.require(context, 'List', { resource: 'Run', agentName, sessionId }),
    assertOwnSession,
    /** What tells the caller from every other one, in rows. */
    keyOf: (context: CallContext): string => throughDoor(source, context).door.key,
    /** The run while it executes in this process. */
    active: (row: Pick<RunRow, 'id'>): ActiveRun | undefined => deps.engine.active(row.id),
    /** The current state of runs that their callers have found before, in one query. */
    heads: deps.records.heads,
    /** What a run that is over has answered; null where it did not. */
    output: (row: Pick<RunRow, 'id' | 'tenant_id'>): Promise<string | null> =>
      deps.records.output(row.tenant_id, row.id),
    /** Ends a run that was found, wherever it executes. */
    cancel: (context: CallContext, row: RunRow) => deps.cancelRun(row, context.principal.actor),
    /** Ends a run of this process whose caller has gone. */
    abandon: (context: CallContext, run: ActiveRun): void =>
      deps.engine.cancel(run, 'Disconnected', context.principal.actor),
  };
};

export type ExposedRuns = ReturnType<typeof createExposedRuns>;
