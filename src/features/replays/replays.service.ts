import { AcpError } from '../../contract/errors.ts';
import { type OperationInput, ok } from '../../contract/operation.ts';
import type { AuditTrail } from '../../core/audit.ts';
import type { Attribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';
import type { RunPlan } from '../../engine/active-run.ts';
import { type CompiledAgent, CompileError, compileFailure } from '../../engine/compiled-agent.ts';
import { type ChatMessage, type RecordedCall, type RunReplay, recordedTools } from '../../engine/context/index.ts';
import { type RunEngine, warningsOf } from '../../engine/lifecycle/index.ts';
import type { AgentVariants } from '../agents/index.ts';
import type { ActiveQuotas } from '../quotas/index.ts';
import {
  assertMayStart,
  failureError,
  type MayStartDeps,
  type RunAccess,
  type RunOwner,
  type RunRecords,
  runPlan,
} from '../runs/index.ts';
import type { SessionTurns } from '../sessions/index.ts';
import type { replayOperations } from './replays.operations.ts';
import type { ToolMode } from './replays.schema.ts';

export interface ReplayServiceDeps extends MayStartDeps {
  readonly authorization: Pick<RunAuthorization, 'require'>;
  readonly attribution: Attribution;
  readonly access: Pick<RunAccess, 'find'>;
  readonly records: RunRecords;
  readonly variants: AgentVariants;
  readonly engine: Pick<RunEngine, 'start'>;
  readonly turns: Pick<SessionTurns, 'ownerOf'>;
  readonly audit: Pick<AuditTrail, 'record'>;
  /** Null: runs are not limited. */
  readonly quotas: Pick<ActiveQuotas, 'admission'> | null;
  readonly recordingEnabled: boolean;
  readonly prefix: string;
  readonly now: () => number;
  readonly newId: () => string;
}

type ReplayBody = OperationInput<(typeof replayOperations)['create']>['body'];

/** More calls than a run can have: the loop is capped and each turn is one message of a model. */
const maxCalls = 100_000;

const assertRepeatable = (run: RunRow): void => {
  if (run.kind === 'Workflow')
    throw new AcpError('replay-not-supported', `Run ${run.id} is a workflow's; only runs of agents can be replayed.`);
  if (run.status === 'Queued' || run.status === 'Running')
    throw new AcpError('run-not-finished', `Run ${run.id} is ${run.status} and can be replayed once it has ended.`);
};

/** What the person or program said in the source turn; what came of it is left to the replay. */
const turnInput = (run: RunRow, messages: readonly ChatMessage[]): readonly ChatMessage[] => {
  const first = messages.findIndex((message) => message.role !== 'User');
  // Decisions on calls of another run say nothing to a model.
  const input = (first === -1 ? messages : messages.slice(0, first)).filter(({ contents }) =>
    contents.some(({ type }) => type !== 'ApprovalResponse'),
  );
  if (input.length > 0) return input;
  throw new AcpError(
    'replay-not-supported',
    `Run ${run.id} went on with another run's turn and has no input of its own.`,
  );
};

const toolsOf = (agent: CompiledAgent) =>
  [...agent.tools.values()].flatMap((tool) => (tool.kind === 'tool' ? [tool.tool.descriptor] : []));

const assertToolsAllow = (agent: CompiledAgent, mode: ToolMode): void => {
  const tools = toolsOf(agent);
  const onClient = tools.find((tool) => tool.runsOnClient);
  if (onClient !== undefined)
    throw new AcpError(
      'replay-client-tools',
      `Agent "${agent.name}" has the client-side tool "${onClient.name}" and cannot be replayed.`,
    );
  const asks = (tool: (typeof tools)[number]): boolean => tool.requiresApproval || agent.asksForEveryTool;
  const guarded = mode === 'LiveTools' ? tools.find(asks) : undefined;
  if (guarded !== undefined)
    throw new AcpError(
      'replay-needs-approval',
      `Tool "${guarded.name}" of agent "${agent.name}" needs approval, which a replay cannot ask for.`,
    );
};

const toRecordedCall = (row: ToolInvocationRow): RecordedCall => ({
  toolName: row.tool_name,
  arguments: row.arguments,
  result: row.result,
  error: row.error,
  succeeded: row.succeeded === 1,
  authorizationDenied: row.authorization_denied === 1,
  timedOut: row.timed_out === 1,
  truncated: row.truncated === 1,
});

const withoutTools = (agent: CompiledAgent): CompiledAgent => ({ ...agent, tools: new Map(), modelTools: [] });

/** Checks in the order of the first refusal, then one run to its end. */
export const replayService = (deps: ReplayServiceDeps): Pick<Handlers<typeof replayOperations>, 'create'> => {
  const compile = async (context: CallContext, source: RunRow, body: ReplayBody, owner: RunOwner) => {
    const { tenantId } = context;
    try {
      const change = {
        version: body.agentVersion ?? null,
        modelProvider: body.modelProvider ?? null,
        modelId: body.modelId ?? null,
      };
      return await deps.variants.compile(tenantId, source.agent_name, change, context.trace ?? null);
    } catch (error) {
      if (!(error instanceof CompileError)) throw error;
      const failure = compileFailure(error);
      const runId = deps.newId();
      await deps.records.recordFailed({
        runId,
        tenantId,
        agentName: source.agent_name,
        agentVersion: error.version,
        isStreaming: false,
        attribution: owner,
        sessionId: null,
        failure,
        replayOfRunId: source.id,
      });
      throw failureError(failure, runId);
    }
  };

  const replayOf = async (source: RunRow, mode: ToolMode): Promise<RunReplay> => {
    if (mode !== 'ReplayTools') return { sourceRunId: source.id, isLive: mode === 'LiveTools', tools: null };
    const rows = await deps.records.toolInvocations(source.tenant_id, source.id, maxCalls);
    // Ids grow in the order of calling; calls side by side may have settled in another one.
    const calls = [...rows].sort((a, b) => (a.id < b.id ? -1 : 1)).map(toRecordedCall);
    return { sourceRunId: source.id, isLive: false, tools: recordedTools(calls) };
  };

  const planOf = async (
    context: CallContext,
    source: RunRow,
    body: ReplayBody,
    ownerId: string | null,
  ): Promise<RunPlan> => {
    const { tenantId, principal } = context;
    // An admission may take a while.
    assertMayStart(deps, tenantId, source.agent_name);
    const mode = body.toolMode ?? 'ReplayTools';
    assertRepeatable(source);
    const recorded = await deps.records.recordedInput(source.tenant_id, source.id);
    if (recorded === null)
      throw new AcpError('run-input-not-recorded', `The input of run ${source.id} was not recorded, or was removed.`);
    const input = turnInput(source, recorded.messages);
    const attribution = await deps.attribution.of(context, { agentName: source.agent_name, sessionId: null });
    const owner: RunOwner = { ...attribution, ownerId };
    const agent = await compile(context, source, body, owner);
    const parameters = agent.resolveParameters(recorded.context.parameters);
    assertToolsAllow(agent, mode);
    const replay = await replayOf(source, mode);
    const id = deps.newId();
    if (mode === 'LiveTools')
      await deps.audit.record(
        {
          tenantId,
          actor: principal.actor,
          action: 'run.replay-live',
          entity: `run:${source.id}`,
          before: null,
          after: { runId: id, agentName: agent.name, agentVersion: agent.version },
        },
        [],
      );
    return runPlan({
      id,
      tenantId,
      requestId: context.requestId,
      agent: mode === 'NoTools' ? withoutTools(agent) : agent,
      culture: recorded.context.culture,
      parameters,
      principal,
      ...owner,
      createdAt: deps.now(),
      // The recorded messages as they are, documents and attachments included.
      resume: {
        messages: input.map((message) => ({ ...message, messageId: deps.newId(), runId: id })),
        calls: [],
        earlier: null,
      },
      replay,
      trace: { parent: context.trace ?? null, link: null },
    });
  };

  return {
    async create(context, { params, body }) {
      const mode = body.toolMode ?? 'ReplayTools';
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Replays need run recording, which is switched off.');
      const { tenantId, principal } = context;
      const source = await deps.access.find(context, params.runId);
      await deps.authorization.require(context, 'Start', {
        resource: 'Run',
        agentName: source.agent_name,
        sessionId: null,
        runId: source.id,
        userId: source.user_id,
      });
      const ownerId = await deps.turns.ownerOf(tenantId, null, principal);
      assertMayStart(deps, tenantId, source.agent_name);
      const { signal } = context;
      const admission = await deps.quotas?.admission.admit({
        tenantId,
        agentName: source.agent_name,
        mayWait: true,
        signal,
      });
      const plan = await planOf(context, source, body, ownerId).catch((error: unknown) => {
        admission?.settled();
        throw error;
      });
      const run = deps.engine.start(admission?.isChecked === false ? { ...plan, isUnchecked: true } : plan);
      void run.log.opened.then(admission?.settled);
      const outcome = await run.done;
      if (outcome.failure !== null) throw failureError(outcome.failure, plan.id);
      const warnings = warningsOf(run);
      return ok(
        {
          runId: plan.id,
          sourceRunId: source.id,
          toolMode: mode,
          agentVersion: plan.agent.version,
          modelProvider: outcome.modelProvider,
          modelId: outcome.modelId,
          status: outcome.status,
          output: outcome.output,
          compareLocation: `${deps.prefix}/api/runs/${source.id}/compare/${plan.id}`,
          ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
        },
        { 'X-Run-Id': plan.id, ...(warnings.length === 0 ? {} : { 'X-Acp-Warning': warnings.join(', ') }) },
      );
    },
  };
};
