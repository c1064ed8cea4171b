import { AcpError } from '../../contract/errors.ts';
import { type OperationAudit, type OperationInput, ok } from '../../contract/operation.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import type { RunRow, ToolInvocationRow } from '../../db/tables.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import type { ChatMessage } from '../../engine/context/index.ts';
import { type RecordedCall, type RunReplay, recordedTools } from '../../engine/context/index.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import type { AgentVariants } from '../agents/index.ts';
import type { AuditLog } from '../audit/index.ts';
import {
  askedAgent,
  failureError,
  type Launch,
  type RunAccess,
  type RunRecords,
  type RunWork,
  warningHeader,
} from '../runs/index.ts';
import { recordedGiven } from './recorded-given.ts';
import type { replayOperations } from './replays.operations.ts';
import type { ToolMode } from './replays.schema.ts';

export interface ReplayServiceDeps {
  readonly launch: Pick<Launch, 'enter' | 'start'>;
  readonly access: Pick<RunAccess, 'find'>;
  readonly records: RunRecords;
  readonly variants: AgentVariants;
  readonly audit: Pick<AuditLog, 'tell'>;
  readonly recordingEnabled: boolean;
  readonly prefix: string;
  readonly newId: () => string;
}

type ReplayBody = OperationInput<(typeof replayOperations)['create']>['body'];

/** Tools are called once more: the entry is written before the first of them. */
const liveReplay: OperationAudit = { action: 'run.replay-live', entity: 'run', mode: 'noted' };

/** More calls than a run can have: the loop is capped and each turn is one message of a model. */
const maxCalls = 100_000;

const assertRepeatable = (run: RunRow): void => {
  if (run.kind === 'Workflow')
    throw new AcpError('replay-not-supported', `Run ${run.id} is a workflow's; only runs of agents can be replayed.`);
  if (run.remote_task !== null)
    throw new AcpError('replay-not-supported', `Run ${run.id} is one that another system has executed.`);
  if (run.kind === 'External')
    throw new AcpError(
      'replay-not-supported',
      `Run ${run.id} was executed by another program; only runs of this service can be replayed.`,
    );
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

const withoutTools = (agent: CompiledAgent): CompiledAgent => ({
  ...agent,
  tools: new Map(),
  modelTools: [],
  withheldTools: null,
});

/** Checks in the order of the first refusal, then one run to its end. */
export const replayService = (deps: ReplayServiceDeps): Pick<Handlers<typeof replayOperations>, 'create'> => {
  const replayOf = async (source: RunRow, mode: ToolMode): Promise<RunReplay> => {
    if (mode !== 'ReplayTools') return { sourceRunId: source.id, isLive: mode === 'LiveTools', tools: null };
    const rows = await deps.records.toolInvocations(source.tenant_id, source.id, maxCalls);
    // Ids grow in the order of calling; calls side by side may have settled in another one.
    const calls = [...rows].sort((a, b) => (a.id < b.id ? -1 : 1)).map(toRecordedCall);
    return { sourceRunId: source.id, isLive: false, tools: recordedTools(calls) };
  };

  /** Checked in the order of the first refusal. */
  const workOf = async (context: CallContext, source: RunRow, body: ReplayBody, runId: string): Promise<RunWork> => {
    const { tenantId, principal } = context;
    const mode = body.toolMode ?? 'ReplayTools';
    assertRepeatable(source);
    const recorded = await deps.records.recordedInput(source.tenant_id, source.id);
    if (recorded === null)
      throw new AcpError('run-input-not-recorded', `The input of run ${source.id} was not recorded, or was removed.`);
    const { given, input: said } = recordedGiven(recorded);
    // Where the last thing that was said is a tool's, all of it is given.
    const input = given !== null && said.length === 0 ? [] : turnInput(source, said);
    const change = {
      version: body.agentVersion ?? null,
      modelProvider: body.modelProvider ?? null,
      modelId: body.modelId ?? null,
    };
    const compiled = await deps.variants.compile(tenantId, source.agent_name, change, context.trace ?? null);
    const asked = recorded.context.asked ?? null;
    const agent = askedAgent(compiled, asked);
    if (agent.model.catalog?.supportsEmbeddings === true)
      throw new AcpError(
        'replay-not-supported',
        `The model of agent "${agent.name}" makes embeddings, which are kept nowhere.`,
      );
    const parameters = agent.resolveParameters(recorded.context.parameters);
    // The caller's own tools were in the request: a call of one ended its run, and ends the replay.
    assertToolsAllow(compiled, mode);
    const replay = await replayOf(source, mode);
    if (mode === 'LiveTools')
      await deps.audit.tell(
        { tenantId, principal, audit: liveReplay },
        {
          id: source.id,
          before: null,
          after: { runId, agentName: agent.name, agentVersion: agent.version },
        },
      );
    return {
      agent: mode === 'NoTools' ? withoutTools(agent) : agent,
      culture: recorded.context.culture,
      parameters,
      given,
      // Nothing is asked again: the servers may say something else by now.
      resources: recorded.context.resources ?? [],
      asked,
      asksNobody: asked?.tools !== undefined,
      // The recorded messages as they are, documents and attachments included.
      resume: {
        messages: input.map((message) => ({ ...message, messageId: deps.newId(), runId })),
        calls: [],
        earlier: null,
      },
      replay,
    };
  };

  return {
    async create(context, { params, body }) {
      const mode = body.toolMode ?? 'ReplayTools';
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Replays need run recording, which is switched off.');
      const source = await deps.access.find(context, params.runId);
      const entrance = await deps.launch.enter({
        kind: 'replay',
        context,
        agentName: source.agent_name,
        body: {},
        isStreaming: false,
        target: { sessionId: null, runId: source.id, userId: source.user_id },
        work: (runId) => workOf(context, source, body, runId),
      });
      const run = await deps.launch.start(entrance);
      const outcome = await run.done;
      if (outcome.failure !== null) throw failureError(outcome.failure, run.id);
      const warnings = warningsOf(run);
      return ok(
        {
          runId: run.id,
          sourceRunId: source.id,
          toolMode: mode,
          agentVersion: run.plan.agent.version,
          modelProvider: outcome.modelProvider,
          modelId: outcome.modelId,
          status: outcome.status,
          output: outcome.output,
          compareLocation: `${deps.prefix}/api/runs/${source.id}/compare/${run.id}`,
          ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
        },
        { 'X-Run-Id': run.id, ...warningHeader(warnings) },
      );
    },
  };
};
