import Type, { type Static } from 'typebox';
import { ChatMessage } from '../../contract/chat-message.ts';
import { runErrorClasses, runWarnings } from '../../contract/run-outcome.ts';
import { Int32, type Json, JsonValue, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';
import { ClientToolCall, PendingToolApproval } from '../../contract/tool-approval.ts';
import { RunScore } from '../scores/scores.schema.ts';

export const runStatuses = [
  'Queued',
  'Running',
  'Completed',
  'Failed',
  'Canceled',
  'AwaitingInput',
  'AwaitingApproval',
] as const;
export type RunStatus = (typeof runStatuses)[number];
export const runKinds = ['Agent', 'Workflow', 'Eval', 'External'] as const;
const finishReasons = ['Stop', 'Length', 'ToolCalls', 'ContentFilter', 'Iterations'] as const;
export type FinishReason = (typeof finishReasons)[number];

/** What every operation that has a run executed to its end may answer. */
export const runErrors = [
  'agent-not-compilable',
  'context-window-exceeded',
  'run-not-allowed',
  'content-blocked',
  'content-filtered',
  'run-budget-exceeded',
  'quota-exceeded',
  'provider-error',
  'provider-unavailable',
  'provider-rate-limited',
  'provider-timeout',
  'tool-failed',
  'tool-timeout',
  'draining',
  'emergency-stopped',
] as const;

const count = () => nullable(Type.Integer());
const amount = () => nullable(Type.Number());

export const RunUsage = Type.Object(
  {
    inputTokens: count(),
    outputTokens: count(),
    totalTokens: count(),
    cachedInputTokens: count(),
    reasoningTokens: count(),
    audioInputTokens: count(),
    audioOutputTokens: count(),
  },
  { title: 'RunUsage', description: 'Token counts; null: the provider did not report it' },
);
export type RunUsage = Static<typeof RunUsage>;

export const RunCost = Type.Object(
  {
    inputCost: amount(),
    inputPricePerMillionTokens: amount(),
    outputCost: amount(),
    outputPricePerMillionTokens: amount(),
    cachedInputCost: amount(),
    cachedInputPricePerMillionTokens: amount(),
    totalCost: amount(),
    currency: nullable(Type.String()),
    source: oneOf(['Catalog', 'Configuration', 'Unknown']),
  },
  { title: 'RunCost', description: 'Cost in the configured currency at the prices of the moment the run ended' },
);
export type RunCost = Static<typeof RunCost>;

export const RunTreeCost = Type.Object(
  {
    inputCost: amount(),
    outputCost: amount(),
    cachedInputCost: amount(),
    totalCost: amount(),
    currency: nullable(Type.String()),
    runsWithUnknownPricing: Type.Integer(),
  },
  { title: 'RunTreeCost' },
);
export type RunTreeCost = Static<typeof RunTreeCost>;

const StoredWarnings = Type.Array(oneOf(runWarnings), {
  description:
    'What the store did not take of the record: events, results of tool calls or other parts may be missing. Left out where it took all',
});

const ProviderReason = Type.Object(
  {
    code: nullable(Type.String()),
    type: nullable(Type.String()),
    param: nullable(Type.String()),
    requestId: Type.String({ description: 'Request under which the log has what the provider said' }),
  },
  { title: 'ProviderReason', description: 'What the provider called the refusal of a model call; identifiers only' },
);

export const RunError = Type.Object(
  {
    type: Type.String(),
    message: Type.String(),
    class: oneOf(runErrorClasses),
    fingerprint: nullable(Type.String()),
    provider: Type.Optional(ProviderReason),
  },
  { title: 'RunError' },
);
export type RunError = Static<typeof RunError>;

const RemoteTask = Type.Object(
  {
    agent: Type.String({ description: 'Name of the remote agent' }),
    taskId: nullable(Type.String({ description: 'As the other system calls it; null: it has told of none' })),
    contextId: nullable(Type.String()),
    state: nullable(Type.String({ description: 'As it was told last' })),
  },
  { title: 'RemoteTask' },
);

export const RunRecord = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    agentName: Type.String(),
    kind: oneOf(runKinds),
    remoteTask: nullable(RemoteTask, { description: 'What another system does of the run; null: nothing' }),
    workflowName: nullable(Type.String()),
    status: oneOf(runStatuses),
    createdAt: Time,
    startedAt: nullable(Time),
    completedAt: nullable(Time),
    durationMs: nullable(Type.Integer()),
    agentVersion: nullable(Type.Integer()),
    modelProvider: nullable(Type.String()),
    modelId: nullable(Type.String()),
    isStreaming: Type.Boolean(),
    jobId: nullable(Uuid),
    sessionId: nullable(Type.String()),
    userId: nullable(Type.String()),
    labels: nullable(Type.Record(Type.String(), Type.String())),
    parentRunId: nullable(Uuid),
    rootRunId: nullable(Uuid),
    depth: Type.Integer(),
    childRunCount: Type.Integer(),
    replayOfRunId: nullable(Uuid),
    continuedFromRunId: nullable(Uuid),
    continuedBy: nullable(Uuid, {
      description: 'The newest run that went on with this one; what this one waited for was answered there',
    }),
    experimentId: nullable(Uuid),
    variant: nullable(Type.String()),
    usage: nullable(RunUsage),
    treeUsage: nullable(RunUsage),
    cost: nullable(RunCost),
    treeCost: nullable(RunTreeCost),
    error: nullable(RunError),
    eventCount: Type.Integer(),
    warnings: Type.Optional(StoredWarnings),
  },
  { title: 'RunRecord', description: 'Summary of a run; carries no message, output or tool payload' },
);
export type RunRecord = Static<typeof RunRecord>;

export const AgentRunResponse = Type.Object(
  {
    runId: Uuid,
    status: oneOf(['Completed', 'AwaitingApproval', 'AwaitingInput']),
    agentName: Type.String(),
    agentVersion: nullable(Int32()),
    sessionId: nullable(Type.String()),
    modelProvider: nullable(Type.String()),
    modelId: nullable(Type.String()),
    output: nullable(Type.String()),
    structuredOutput: nullable(JsonValue),
    finishReason: nullable(oneOf(finishReasons)),
    approvals: Type.Array(PendingToolApproval),
    clientToolCalls: Type.Array(ClientToolCall),
    usage: nullable(RunUsage),
    cost: nullable(RunCost),
    durationMs: Type.Integer(),
    warnings: Type.Optional(
      Type.Array(oneOf(runWarnings), {
        description: 'What the store did not do for this run; left out where it did all',
      }),
    ),
  },
  { title: 'AgentRunResponse' },
);
export type AgentRunResponse = Static<typeof AgentRunResponse>;

export const AcceptedRunResponse = Type.Object(
  { runId: Uuid, jobId: Uuid, location: Type.String(), eventsLocation: Type.String() },
  { title: 'AcceptedRunResponse' },
);

export const RunEvent = Type.Object(
  { runId: Uuid, sequence: Type.Integer({ minimum: 0 }), type: Type.String(), timestamp: Time },
  {
    title: 'RunEvent',
    description: 'One event of the log; further members depend on its type',
    additionalProperties: true,
  },
);
export type RunEvent = Static<typeof RunEvent> & { readonly [member: string]: Json };

const ToolCallUsage = Type.Object({
  unit: Type.String(),
  quantity: Type.Number(),
  cost: amount(),
  currency: nullable(Type.String()),
  isEstimated: Type.Boolean(),
});

export const ToolInvocationRecord = Type.Object(
  {
    id: Uuid,
    runId: Uuid,
    toolName: Type.String(),
    toolCallId: nullable(Type.String()),
    source: nullable(Type.String()),
    arguments: nullable(Type.String()),
    result: nullable(Type.String()),
    truncated: Type.Boolean(),
    error: nullable(Type.String()),
    succeeded: Type.Boolean(),
    authorizationDenied: Type.Boolean(),
    timedOut: Type.Boolean(),
    durationMs: nullable(Type.Integer()),
    usage: nullable(ToolCallUsage),
    createdAt: Time,
  },
  { title: 'ToolInvocationRecord' },
);
export type ToolInvocationRecord = Static<typeof ToolInvocationRecord>;

export const RunInputResponse = Type.Object(
  {
    runId: Uuid,
    createdAt: Time,
    messages: Type.Array(ChatMessage),
    resources: Type.Optional(
      Type.Array(Type.Object({ name: Type.String(), content: Type.String() }), {
        description: 'What was read of the resources that the agent names; absent: nothing',
      }),
    ),
  },
  { title: 'RunInputResponse' },
);

const RunComparisonSide = Type.Object(
  {
    runId: Uuid,
    agentName: Type.String(),
    agentVersion: nullable(Type.Integer()),
    modelProvider: nullable(Type.String()),
    modelId: nullable(Type.String()),
    status: oneOf(runStatuses),
    durationMs: nullable(Type.Integer()),
    usage: nullable(RunUsage),
    cost: nullable(RunCost),
    toolCallCount: Type.Integer(),
    errorClass: nullable(oneOf(runErrorClasses)),
    errorMessage: nullable(Type.String()),
    replayOfRunId: nullable(Uuid),
    output: nullable(Type.String()),
    scores: Type.Array(RunScore),
    warnings: Type.Optional(StoredWarnings),
  },
  { title: 'RunComparisonSide' },
);
export type RunComparisonSide = Static<typeof RunComparisonSide>;

export const RunComparisonResponse = Type.Object(
  { left: RunComparisonSide, right: RunComparisonSide },
  { title: 'RunComparisonResponse' },
);

const TraceSpan = Type.Object(
  {
    id: Uuid,
    parentId: nullable(Uuid),
    spanId: Type.String({ description: '16 hex digits' }),
    name: Type.String(),
    kind: oneOf(['Internal', 'Server', 'Client', 'Producer', 'Consumer']),
    startedAt: Time,
    endedAt: nullable(Time),
    status: oneOf(['Unset', 'Ok', 'Error']),
    attributes: Type.Record(Type.String(), Type.String()),
  },
  { title: 'TraceSpan' },
);

export const RunTrace = Type.Object(
  {
    id: Uuid,
    traceId: Type.String({ description: '32 hex digits' }),
    runId: Uuid,
    tenantId: Type.String(),
    startedAt: Time,
    endedAt: nullable(Time),
    spans: Type.Array(TraceSpan, { description: 'By start' }),
  },
  { title: 'RunTrace' },
);
export type RunTrace = Static<typeof RunTrace>;
