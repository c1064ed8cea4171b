import type { RunErrorClass } from '../../contract/run-outcome.ts';
import type { Statement } from '../../db/statement.ts';
import type { ActiveRun, RunOutcome, RunPlan } from '../active-run.ts';
import type { ChatMessage, TurnResume } from '../context/index.ts';
import { decimal } from '../pricing.ts';
import { createTurnSteps, logRunEnd, type TurnSteps } from '../record/index.ts';
import { problemCode, RunFailure, storedError } from '../run-failure.ts';
import { reportedUsage } from '../usage.ts';
import type { ClosingPorts, EnginePorts, OpeningPorts } from './engine-ports.ts';
import { warningsOf } from './run-warnings.ts';

/** Where a run stores its turn step by step; null when neither a later run nor a session would get it. */
export const stepsFor = (plan: RunPlan, ports: OpeningPorts): TurnSteps | null => {
  const { continuation, retries } = ports.settings.steps;
  // What its caller gave, and that nobody can be asked, is known to this attempt alone.
  const continues = continuation && plan.sessionId !== null && plan.given === null && !plan.asksNobody;
  const retried = plan.job !== null && (retries || plan.job.attempt > 1);
  if (!ports.settings.recording.enabled || plan.parent !== null) return null;
  if (!(continues || retried) && plan.sessionId === null) return null;
  const first = plan.resume?.earlier?.storedSteps ?? 0;
  const write = (sequence: number, content: string) => ports.journal.step(plan.tenantId, plan.id, sequence, content);
  return createTurnSteps(first, write, continues || retried);
};

/** The first steps of a turn that is stored; a further attempt finds its own there. */
export const startSteps = (
  run: ActiveRun,
  ports: OpeningPorts,
  resume: TurnResume | null,
  input: readonly ChatMessage[],
): readonly Statement[] => {
  const { plan, steps } = run;
  if (steps === null || (resume !== null && resume.earlier !== null)) return [];
  if (!steps.continues) {
    // The recorded input has the message.
    const [message] = ports.settings.recording.recordRunInput ? [] : input;
    if (resume !== null) return [steps.resume(resume)];
    return message === undefined ? [] : [steps.message(message, [], run.usage, run.cost)];
  }
  const { requestId, culture, parameters } = plan;
  const origin = { requestId, culture, parameters, principal: ports.unfinished.packPrincipal(plan) };
  // Steps of an attempt that never got further, and those of the run that this one goes on with.
  const dropped = [plan.id, plan.continuedFromRunId].flatMap((id) =>
    id === null ? [] : [ports.journal.stepsDropped(id)],
  );
  const [message] = input;
  // Numbered as they are made, so the start comes first.
  const start = steps.start(origin, resume);
  const first = resume === null && message !== undefined ? [steps.message(message, [], run.usage, run.cost)] : [];
  return [...dropped, ...start, ...first];
};

/** What failed is in lines of their own: a provider's answer, and what a tool threw. */
const toldByCallee: ReadonlySet<RunErrorClass> = new Set([
  ...(['ProviderError', 'ProviderUnavailable', 'RateLimited', 'Timeout'] as const),
  ...(['ContentFiltered', 'ToolError', 'ToolTimeout'] as const),
]);

const aboutRun = (run: ActiveRun) => ({
  runId: run.id,
  requestId: run.plan.requestId,
  tenantId: run.plan.tenantId,
  agent: run.plan.agent.name,
  ...(run.trace === null ? {} : { traceId: run.trace.span.traceId }),
});

/** A fault of the service, with its stack. */
const logFault = (run: ActiveRun, ports: Pick<ClosingPorts, 'log'>, { cause }: RunFailure): void =>
  ports.log.error({ ...aboutRun(run), error: cause }, 'A run failed because of an internal error');

/** The attempt failed, and the run goes back to the queue. */
const logRetry = (run: ActiveRun, ports: Pick<ClosingPorts, 'log'>, failure: RunFailure): void => {
  const { errorClass, type } = failure;
  if (errorClass === 'Unknown') logFault(run, ports, failure);
  ports.log.info(
    {
      ...aboutRun(run),
      status: 'Queued',
      errorCode: problemCode(errorClass, type),
      errorType: type,
      ...causeOf(failure),
    },
    'An attempt of a run failed, and the run is queued again',
  );
};

const causeOf = ({ errorClass, cause }: RunFailure): { readonly cause?: unknown } =>
  cause === undefined || errorClass === 'Unknown' || toldByCallee.has(errorClass) ? {} : { cause };

export const logEnd = (run: ActiveRun, ports: Pick<ClosingPorts, 'log'>, outcome: RunOutcome): void => {
  const { failure, error, status, durationMs } = outcome;
  if (failure?.errorClass === 'Unknown') logFault(run, ports, failure);
  logRunEnd(ports.log, {
    ...aboutRun(run),
    ...{ kind: run.plan.kind, parentRunId: run.plan.parent?.id ?? null },
    ...{ status, durationMs, error, warnings: warningsOf(run) },
    ...{ inputTokens: outcome.usage?.inputTokens ?? null, outputTokens: outcome.usage?.outputTokens ?? null },
    cost: decimal(outcome.cost?.total ?? null),
    ...(failure === null || status === 'Canceled' ? {} : causeOf(failure)),
  });
};

/** How a run ended, before what its answer or its pause adds. */
export const outcomeOf = (
  run: ActiveRun,
  status: RunOutcome['status'],
  failure: RunFailure | null,
  now: number,
): RunOutcome => ({
  status,
  pause: null,
  output: null,
  finishReason: null,
  usage: reportedUsage(run.usage),
  cost: run.cost,
  error: failure === null ? null : storedError(failure),
  failure,
  durationMs: now - run.startedAt,
  modelProvider: run.target.provider.name,
  modelId: run.target.model,
});

/** Puts the run back in line; null when this was its last attempt, or the store does not take it. */
export const requeueRun = async (
  run: ActiveRun,
  ports: ClosingPorts,
  failure: RunFailure,
): Promise<RunOutcome | null> => {
  // What was blocked once is blocked again, and of its text nothing is left to try again with.
  if (run.blocked !== null) return null;
  // Without its steps another attempt would begin anew and repeat calls that are settled.
  if (run.steps?.continues !== true || !run.log.recording) return null;
  const statements = ports.unfinished.requeue(run.plan, failure);
  if (statements === null) return null;
  logRetry(run, ports, failure);
  const freed = run.session?.stepBack() ?? [];
  if (!(await run.log.suspend([...statements, ...freed]))) return null;
  return outcomeOf(run, 'Queued', failure, ports.now());
};

/** What fails because the store is away, or cannot say what the run has to know. */
const awayTypes: ReadonlySet<string> = new Set(['store_unavailable', 'quotas_unreadable']);

/** Whether nobody waits for this run but its job, and the store did not take a unit of it because it is away. */
export const isJobUnstored = ({ plan }: ActiveRun, ports: Pick<EnginePorts, 'failureOf'>, error: unknown): boolean =>
  plan.job !== null && ports.failureOf(error) === 'away';

/** The start of a job's run that the store did not take: it is made once more, and not without its record. */
export const notStarted = (cause: unknown): RunFailure =>
  new RunFailure('Infrastructure', 'store_unavailable', 'The store did not take the start of the run.', { cause });

/**
 * Puts the run of a job back in line that has met a store that is away before anything came of it: nobody waits for its
 * answer, so it has the time. Null: it has done something, or fails for another reason.
 */
export const postponeRun = async (
  run: ActiveRun,
  ports: ClosingPorts,
  failure: RunFailure,
): Promise<RunOutcome | null> => {
  if (run.plan.job === null || run.hasActed || run.blocked !== null || !awayTypes.has(failure.type)) return null;
  logRetry(run, ports, failure);
  const outcome = outcomeOf(run, 'Queued', failure, ports.now());
  const queued = ports.unfinished.postpone(run.plan, failure);
  const back = queued === null ? null : [...queued, ...(run.session?.stepBack() ?? [])];
  if (back !== null && run.log.recording && (await run.log.suspend(back))) return outcome;
  // What was sent may still come to the store: the next attempt finds it there.
  run.log.abandon();
  return { ...outcome, unstarted: failure };
};

/** Leaves the run to the process that has closed it, or has its job now. */
export const abandonRun = (run: ActiveRun, ports: ClosingPorts): RunOutcome => {
  run.log.abandon();
  ports.log.warn(
    { runId: run.id, requestId: run.plan.requestId, tenantId: run.plan.tenantId },
    'A run was closed or taken over by others: nothing more of it is written here',
  );
  const failure = new RunFailure('Infrastructure', 'orphaned', 'Another process has closed the run or taken it over.');
  return { ...outcomeOf(run, 'Failed', failure, ports.now()), isLost: true };
};
