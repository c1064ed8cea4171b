import { AcpError, invalidField } from '../../contract/errors.ts';
import type { OperationInput, OperationReply, StreamReply } from '../../contract/operation.ts';
import { checkRunBody } from '../../contract/run-body.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import type { CallContext, IdempotentCall } from '../../core/context.ts';
import type { ActiveRun, RunOutcome } from '../../engine/active-run.ts';
import { waitingApprovals, waitingClientCalls } from '../../engine/control/index.ts';
import { warningsOf } from '../../engine/lifecycle/index.ts';
import { type PriceList, publicCost } from '../../engine/pricing.ts';
import type { PayloadSettings } from '../../engine/record/index.ts';
import { structuredOutput } from '../../engine/turn/index.ts';
import { hasAnswers } from '../sessions/index.ts';
import type { Entrance, Launch } from './launch/index.ts';
import type { RunAnswers } from './run-answers.ts';
import type { runOperations } from './runs.operations.ts';
import type { AgentRunResponse } from './runs.schema.ts';
import { warningHeader } from './warning-header.ts';

type StartOperation = (typeof runOperations)['start'];
type StartInput = OperationInput<StartOperation>;
type StartReply = OperationReply<StartOperation>;
type PlainReply = Exclude<StartReply, StreamReply>;

export interface RunStartDeps {
  readonly launch: Pick<Launch, 'enter' | 'queue'>;
  readonly answers: RunAnswers;
  readonly prices: PriceList;
  readonly prefix: string;
  readonly settings: { readonly payloads: PayloadSettings };
}

type RunMode = 'stream' | 'json' | 'queued';

/** `respond-async` in a `Prefer` list (RFC 7240); other preferences are ignored. */
const prefersAsync = (prefer: string | undefined): boolean =>
  (prefer ?? '').split(',').some((preference) => preference.split(';')[0]?.trim().toLowerCase() === 'respond-async');

/** First match: queued, then one JSON answer, then the stream. */
const runMode = (
  body: AgentRunRequest,
  headers: { readonly prefer?: string; readonly 'idempotency-key'?: string },
): RunMode => {
  const queued = prefersAsync(headers.prefer);
  const keyed = headers['idempotency-key'] !== undefined;
  if (body.stream === true && (queued || keyed))
    throw new AcpError('stream-not-possible', 'A queued run or one with an idempotency key cannot be streamed.', {
      details: {
        errors: [{ path: 'stream', message: 'must not be true with `Prefer: respond-async` or `Idempotency-Key`' }],
      },
    });
  if (queued) return 'queued';
  return keyed || body.stream === false ? 'json' : 'stream';
};

/** What the schema cannot say of a run request. */
const checkRunRequest = (body: AgentRunRequest, mode: RunMode): void => {
  if (mode === 'queued' && hasAnswers(body))
    throw new AcpError('not-for-queued-runs', 'Decisions and tool results cannot be queued.');
  if (body.lane !== undefined && body.lane !== null && mode !== 'queued')
    throw invalidField('lane', 'is for queued runs only');
  checkRunBody(body);
};

const warningsMember = (run: ActiveRun): Pick<AgentRunResponse, 'warnings'> => {
  const warnings = warningsOf(run);
  return warnings.length === 0 ? {} : { warnings: [...warnings] };
};

/** The answer of a run that was asked for as JSON. */
const answerBody = (deps: RunStartDeps, run: ActiveRun, outcome: RunOutcome): AgentRunResponse => ({
  runId: run.id,
  status: outcome.pause?.status ?? 'Completed',
  agentName: run.plan.agent.name,
  agentVersion: run.plan.agent.version,
  sessionId: run.plan.sessionId,
  modelProvider: outcome.modelProvider,
  modelId: outcome.modelId,
  output: outcome.output,
  structuredOutput: (outcome.output === null
    ? null
    : structuredOutput(run, outcome.output)) as AgentRunResponse['structuredOutput'],
  finishReason: outcome.finishReason,
  approvals: outcome.pause === null ? [] : waitingApprovals(outcome.pause, deps.settings.payloads, false),
  clientToolCalls: outcome.pause === null ? [] : waitingClientCalls(outcome.pause),
  usage: outcome.usage,
  cost: outcome.cost === null ? null : publicCost(outcome.cost, deps.prices.currency),
  durationMs: outcome.durationMs,
  ...warningsMember(run),
});

const runHeaders = (deps: RunStartDeps, runId: string): Record<string, string> => ({
  'X-Run-Id': runId,
  'Content-Location': `${deps.prefix}/api/runs/${runId}/events`,
});

/** Milliseconds that the service itself took: all time since the request, less the waits for model providers and tools. */
const overheadOf = (run: ActiveRun, receivedAt: number): string =>
  Math.max(0, performance.now() - receivedAt - run.waits.totalMs).toFixed(2);

/** A run over the API: answered as a stream, with its outcome, or with where it can be found later. */
export const createRunStart = (deps: RunStartDeps) => {
  const runToEnd = async (context: CallContext, input: StartInput, entrance: Entrance): Promise<PlainReply> => {
    const receivedAt = context.receivedAt ?? performance.now();
    const { run, outcome } = await deps.answers.toEnd(context, entrance, input.query.onDisconnect);
    return {
      status: 200,
      body: answerBody(deps, run, outcome),
      headers: {
        'X-Run-Id': run.id,
        'X-Acp-Overhead-Ms': overheadOf(run, receivedAt),
        ...warningHeader(warningsOf(run)),
      },
    };
  };

  const accept = async (entrance: Entrance): Promise<PlainReply> => {
    const runId = await deps.launch.queue(entrance);
    const location = `${deps.prefix}/api/runs/${runId}`;
    return {
      status: 202,
      body: { runId, jobId: runId, location, eventsLocation: `${location}/events` },
      headers: { Location: location, 'Preference-Applied': 'respond-async', 'X-Run-Id': runId },
    };
  };

  const answer = (context: CallContext, input: StartInput, entrance: Entrance): Promise<PlainReply> =>
    entrance.request.kind === 'queued' ? accept(entrance) : runToEnd(context, input, entrance);

  const enter = (context: CallContext, { params: { name }, body }: StartInput, mode: RunMode) =>
    deps.launch.enter({
      kind: mode === 'queued' ? 'queued' : hasAnswers(body) ? 'answers' : 'request',
      context,
      agentName: name,
      body,
      isStreaming: mode === 'stream',
      target: { sessionId: body.sessionId ?? null },
      work: null,
    });

  return async (context: CallContext & IdempotentCall, input: StartInput): Promise<StartReply> => {
    const mode = runMode(input.body, input.headers);
    checkRunRequest(input.body, mode);
    if (mode === 'stream') context.openStream?.();
    const entered = enter(context, input, mode);
    const entrance = entered instanceof Promise ? await entered : entered;
    // A stored answer is only for callers that may start the run, and belongs to the owner of its session.
    if (context.once !== null) return await context.once(entrance.ownerId, () => answer(context, input, entrance));
    if (mode !== 'stream') return await answer(context, input, entrance);
    const { run, stream } = await deps.answers.streamed(context, entrance, input.query.onDisconnect);
    return { status: 200, stream, headers: { ...runHeaders(deps, run.id), ...warningHeader(warningsOf(run)) } };
  };
};
