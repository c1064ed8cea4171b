import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { AgentRunRequest } from '../../contract/run-request.ts';
import { AgentName, nullable, oneOf, pagingQuery, Uuid } from '../../contract/schema.ts';
import {
  AcceptedRunResponse,
  AgentRunResponse,
  RunComparisonResponse,
  RunEvent,
  RunInputResponse,
  RunRecord,
  RunTrace,
  runErrors,
  runKinds,
  runStatuses,
  ToolInvocationRecord,
} from './runs.schema.ts';

const read = { tag: 'Runs', role: 'Reader', scope: 'RunsRead', method: 'GET' } as const;
const write = { tag: 'Runs', role: 'Operator', scope: 'RunsWrite' } as const;
const RunId = Type.Object({ runId: Uuid });

export const runOperations = defineOperations({
  start: {
    ...write,
    method: 'POST',
    path: '/api/agents/{name}/run',
    // A rule is given only by who could create it.
    raised: [{ member: ['approvals', 'remember'], value: true, role: 'Admin', scope: 'PlatformAdmin' }],
    summary: 'Run an agent: as an event stream, as one JSON response, or queued',
    description:
      "By default the response is the stream of the run's events. `stream: false` or an `Idempotency-Key` requests one JSON response at the end of the run, and `Prefer: respond-async` requests 202 with the id of a queued run.",
    params: AgentName,
    query: Type.Object({
      onDisconnect: Type.Optional(
        oneOf(['continue', 'cancel'], { description: 'Effect of a client disconnect on the run' }),
      ),
    }),
    headers: Type.Object({
      'idempotency-key': Type.Optional(
        Type.String({ description: 'Requests one JSON response, which every repeat of the request receives again' }),
      ),
      prefer: Type.Optional(Type.String({ description: '`respond-async` queues the run' })),
    }),
    idempotency: true,
    body: AgentRunRequest,
    nullIsAbsent: true,
    maxBodyBytes: 4_194_304,
    responses: { 200: AgentRunResponse, 202: AcceptedRunResponse },
    stream: RunEvent,
    errors: [
      'message-required',
      'stream-not-possible',
      'parameter-invalid',
      'attribution-invalid',
      'attachment-not-found',
      'not-for-queued-runs',
      'idempotency-key-invalid',
      'agent-not-found',
      'session-agent-mismatch',
      'session-busy',
      'session-queue-full',
      'session-conflict',
      'run-canceled',
      'run-not-on-this-instance',
      'idempotency-in-progress',
      'async-runs-disabled',
      'idempotency-disabled',
      'run-recording-disabled',
      'feature-not-available',
      ...runErrors,
      'idempotency-key-reused',
    ],
    cli: { handWritten: true },
  },
  list: {
    ...read,
    path: '/api/runs',
    summary: 'List runs, newest first',
    description:
      'Child runs are omitted unless `includeChildren` or a filter on parent or root includes them. A caller without access to all runs gets only the runs they may see.',
    query: Type.Object({
      agentName: Type.Optional(Type.String()),
      status: Type.Optional(
        oneOf([...runStatuses, 'Continued'], {
          description: 'Continued: another run continued the waiting or unfinished work of this one',
        }),
      ),
      continued: Type.Optional(
        Type.Boolean({ description: 'False: omits runs that another run continued; true: only these' }),
      ),
      kind: Type.Optional(oneOf(runKinds)),
      sessionId: Type.Optional(Type.String()),
      errorType: Type.Optional(Type.String()),
      userId: Type.Optional(Type.String()),
      label: Type.Optional(Type.String({ description: '`key:value`, or a bare key for any value' })),
      startedAfter: Type.Optional(Type.String({ format: 'date-time', description: 'Exclusive' })),
      includeChildren: Type.Optional(Type.Boolean({ default: false, description: 'Default false: roots only' })),
      parentRunId: Type.Optional(Uuid),
      rootRunId: Type.Optional(Uuid),
      ...pagingQuery,
    }),
    responses: { 200: Type.Array(RunRecord) },
    errors: ['run-not-allowed'],
    cli: {
      columns: [
        'id',
        'agentName',
        'status',
        'startedAt',
        'durationMs',
        'usage.totalTokens',
        'cost.totalCost',
        'error.type',
        'continuedBy',
        'warnings',
      ],
    },
  },
  get: {
    ...read,
    path: '/api/runs/{runId}',
    summary: 'Show one run',
    description:
      'The record summarizes the run: status, model, tokens, cost, durations and, if it failed, the error. The events of the run show each step.',
    params: RunId,
    responses: { 200: RunRecord },
    errors: ['run-not-found'],
  },
  tree: {
    ...read,
    path: '/api/runs/{runId}/tree',
    summary: 'Get the complete run tree from its root, given any run of it',
    description:
      'Each run is a record with its parent, which shows the agents that called other agents. A very large tree is truncated at a fixed number of runs.',
    params: RunId,
    responses: { 200: Type.Array(RunRecord) },
    errors: ['run-not-found'],
    cli: { handWritten: true },
  },
  events: {
    ...read,
    path: '/api/runs/{runId}/events',
    summary: 'Follow the event log of a run, live or finished',
    description:
      'Stored events come first, then live ones until the run ends. `Last-Event-ID` continues after the event with that sequence number, so a broken connection loses nothing.',
    params: RunId,
    headers: Type.Object({
      'last-event-id': Type.Optional(
        nullable(
          Type.String({
            pattern: '^\\d*$',
            description: 'Sequence of the last event received; the stream continues after it. Empty: same as absent',
          }),
        ),
      ),
    }),
    responses: {},
    stream: RunEvent,
    errors: ['run-not-found'],
    cli: { handWritten: true },
  },
  cancel: {
    ...write,
    method: 'POST',
    path: '/api/runs/{runId}/cancel',
    summary: 'Cancel a run and its descendants',
    description:
      'The response arrives before the runs end; their logs show when each one ended. A run that has already finished is rejected.',
    params: RunId,
    responses: { 202: RunRecord },
    errors: ['run-not-found', 'run-not-on-this-instance', 'run-finished'],
  },
  tools: {
    ...read,
    path: '/api/runs/{runId}/tools',
    summary: 'List the tool calls of a run in the order they settled, at most 1000',
    description:
      'Each entry has the tool, its arguments, its duration and its outcome. Arguments and results are present only if their recording is enabled.',
    params: RunId,
    responses: { 200: Type.Array(ToolInvocationRecord) },
    errors: ['run-not-found'],
    cli: { columns: ['toolName', 'toolCallId', 'succeeded', 'durationMs', 'timedOut', 'error', 'createdAt'] },
  },
  input: {
    ...read,
    path: '/api/runs/{runId}/input',
    summary: 'Show the messages that a run was started with',
    description:
      "The response contains the caller's messages, not the prompt with instructions and history that the model received. Inputs are present only if their recording is enabled.",
    params: RunId,
    responses: { 200: RunInputResponse },
    errors: ['run-not-found', 'run-input-not-recorded'],
  },
  trace: {
    ...read,
    path: '/api/runs/{runId}/trace',
    summary: 'Get the stored spans of the complete run tree, given any run of it',
    description:
      'Spans are stored for failed runs and for a sample of the others, so not every run has a trace. They are ordered by start, each with its parent.',
    params: RunId,
    responses: { 200: RunTrace },
    errors: ['run-not-found', 'trace-not-found'],
    cli: { handWritten: true },
  },
  compare: {
    ...read,
    path: '/api/runs/{a}/compare/{b}',
    summary: 'Show two runs side by side',
    description:
      'Each side has agent, model, status, usage, cost and response; the client compares them. Any two runs that the caller may see can be compared, including runs of different agents.',
    params: Type.Object({ a: Uuid, b: Uuid }),
    responses: { 200: RunComparisonResponse },
    errors: ['run-not-found'],
    cli: { handWritten: true },
  },
});
