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
    summary: 'Run an agent: as an event stream, as one JSON answer, or queued',
    description:
      "Without more, the answer is the stream of the run's events. `stream: false` or an `Idempotency-Key` asks for one JSON answer at its end, and `Prefer: respond-async` for 202 with the id of a queued run.",
    params: AgentName,
    query: Type.Object({
      onDisconnect: Type.Optional(oneOf(['continue', 'cancel'], { description: 'What a lost client does to the run' })),
    }),
    headers: Type.Object({
      'idempotency-key': Type.Optional(Type.String({ description: 'One JSON answer, given again to every repeat' })),
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
      'Child runs are left out unless `includeChildren` or a filter on parent or root asks for them. A caller who may not see every run gets the runs that are theirs to see.',
    query: Type.Object({
      agentName: Type.Optional(Type.String()),
      status: Type.Optional(
        oneOf([...runStatuses, 'Continued'], {
          description: 'Continued: another run went on with what this one waited for or left',
        }),
      ),
      continued: Type.Optional(
        Type.Boolean({ description: 'False: without the runs that another one went on with; true: these alone' }),
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
      'The record sums the run up: status, model, tokens, cost, durations and the error of a failed one. What happened step by step is in its events.',
    params: RunId,
    responses: { 200: RunRecord },
    errors: ['run-not-found'],
  },
  tree: {
    ...read,
    path: '/api/runs/{runId}/tree',
    summary: 'The whole run tree, from its root, whichever member is named',
    description:
      'Each run of the tree is a record with its parent, so that agents that called agents can be seen at once. A very large tree is cut off at a fixed number of runs.',
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
      'The stored events come first, then live ones until the run ends. `Last-Event-ID` goes on after the event with that sequence number, so that a broken connection loses nothing.',
    params: RunId,
    headers: Type.Object({
      'last-event-id': Type.Optional(
        nullable(
          Type.String({
            pattern: '^\\d*$',
            description: 'Sequence of the last event received; the stream goes on after it. Empty: as without it',
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
    summary: 'Ask a run and its descendants to stop',
    description:
      'The answer comes before the runs have ended; their logs tell when they have. A run that is finished already is refused.',
    params: RunId,
    responses: { 202: RunRecord },
    errors: ['run-not-found', 'run-not-on-this-instance', 'run-finished'],
  },
  tools: {
    ...read,
    path: '/api/runs/{runId}/tools',
    summary: 'Tool calls of a run in the order they settled, at most 1000',
    description:
      'Each entry holds what was called, with what, how long it took and how it ended. Arguments and results are there as far as recording them is switched on.',
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
      'These are the messages of the caller, not the prompt with instructions and history that the model got. Inputs are there only while recording them is switched on.',
    params: RunId,
    responses: { 200: RunInputResponse },
    errors: ['run-not-found', 'run-input-not-recorded'],
  },
  trace: {
    ...read,
    path: '/api/runs/{runId}/trace',
    summary: 'The stored spans of the whole run tree, whichever member is named',
    description:
      'Spans are kept for failed runs and for a sample of the others, so not every run has a trace. They are in the order of their starts, each with its parent.',
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
      'Each side has agent, model, status, usage, cost and answer; saying what differs is left to the reader. Any two runs that the caller may see can be compared, also of different agents.',
    params: Type.Object({ a: Uuid, b: Uuid }),
    responses: { 200: RunComparisonResponse },
    errors: ['run-not-found'],
    cli: { handWritten: true },
  },
});
