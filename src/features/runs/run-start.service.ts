import type { OperationInput, OperationReply, StreamReply } from '../../contract/operation.ts';
import type { CallContext, IdempotentCall } from '../../core/context.ts';
import type { ActiveRun } from '../../engine/active-run.ts';
import type { LiveRuns } from '../../engine/lifecycle/index.ts';
import { notAdmitted } from '../../engine/lifecycle/index.ts';
import type { PriceList } from '../../engine/pricing.ts';
import type { PayloadSettings } from '../../engine/record/index.ts';
import { hasAnswers } from '../sessions/index.ts';
import { type Entrance, failureError, type Launch } from './launch/index.ts';
import { answerBody, warningHeader } from './run-answer.ts';
import { checkRunRequest, type RunMode, runMode } from './run-request.rules.ts';
import type { runOperations } from './runs.operations.ts';

type StartOperation = (typeof runOperations)['start'];
type StartInput = OperationInput<StartOperation>;
type StartReply = OperationReply<StartOperation>;
type PlainReply = Exclude<StartReply, StreamReply>;

export interface RunStartDeps {
  readonly launch: Pick<Launch, 'enter' | 'start' | 'queue'>;
  readonly engine: Pick<LiveRuns, 'cancel'>;
  readonly prices: PriceList;
  readonly prefix: string;
  readonly settings: { readonly payloads: PayloadSettings };
}

const runHeaders = (deps: RunStartDeps, runId: string): Record<string, string> => ({
  'X-Run-Id': runId,
  'Content-Location': `${deps.prefix}/api/runs/${runId}/events`,
});

/** Milliseconds that the service itself took: all time since the request, less the waits for model providers and tools. */
const overheadOf = (run: ActiveRun, receivedAt: number): string =>
  Math.max(0, performance.now() - receivedAt - run.waits.totalMs).toFixed(2);

const cancelOnDisconnect = (deps: RunStartDeps, context: CallContext, run: ActiveRun): void => {
  const cancel = () => deps.engine.cancel(run, 'Disconnected', context.principal.actor);
  context.signal.addEventListener('abort', cancel, { once: true });
  void run.done.then(() => context.signal.removeEventListener('abort', cancel));
  if (context.signal.aborted) cancel();
};

/** A run over the API: answered as a stream, with its outcome, or with where it can be found later. */
export const createRunStart = (deps: RunStartDeps) => {
  const runToEnd = async (context: CallContext, input: StartInput, entrance: Entrance): Promise<PlainReply> => {
    const receivedAt = context.receivedAt ?? performance.now();
    const run = await deps.launch.start(entrance);
    if (input.query.onDisconnect === 'cancel') cancelOnDisconnect(deps, context, run);
    const outcome = await run.done;
    if (outcome.failure !== null) throw failureError(outcome.failure, run.id);
    return {
      status: 200,
      body: answerBody(deps, run, outcome),
      headers: { 'X-Run-Id': run.id, 'X-Acp-Overhead-Ms': overheadOf(run, receivedAt), ...warningHeader(run) },
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
    const entered = enter(context, input, mode);
    const entrance = entered instanceof Promise ? await entered : entered;
    // A stored answer is only for callers that may start the run, and belongs to the owner of its session.
    if (context.once !== null) return await context.once(entrance.ownerId, () => answer(context, input, entrance));
    if (mode !== 'stream') return await answer(context, input, entrance);
    const run = await deps.launch.start(entrance);
    if (input.query.onDisconnect === 'cancel') cancelOnDisconnect(deps, context, run);
    const stream = run.log.source();
    // The head of the answer names the run: whoever has read it finds the run, also after a crash.
    await run.log.opened;
    const { stopReason } = run;
    // Nothing was streamed of a run that the store did not admit, and no log tells of it.
    if (stopReason?.kind === 'fail' && stopReason.failure.type === notAdmitted)
      throw failureError(stopReason.failure, run.id);
    return { status: 200, stream, headers: { ...runHeaders(deps, run.id), ...warningHeader(run) } };
  };
};
