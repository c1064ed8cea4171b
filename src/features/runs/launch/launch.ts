import { AcpError } from '../../../contract/errors.ts';
import type { RunAuthorization } from '../../../core/caller/run-authorization.ts';
import { ConditionFailedError } from '../../../db/statement.ts';
import type { ActiveRun, RunPlan } from '../../../engine/active-run.ts';
import { type CompiledAgent, CompileError, compileFailure } from '../../../engine/compiled-agent.ts';
import type { RunEngine } from '../../../engine/lifecycle/index.ts';
import type { QueuedJob } from '../../../scheduler/job-queue.ts';
import { type ActiveQuotas, type Admission, lapsedAdmission } from '../../quotas/index.ts';
import { hasAnswers, type Placed, type SessionPlaces } from '../../sessions/index.ts';
import type { DetachedRuns } from '../detached-runs.ts';
import { storedAttribution } from '../run-record.ts';
import type { FoundRun } from '../runs.store.ts';
import { checkPrompt, currentRequest } from './accepted-run.ts';
import type { FlowDoors } from './flow-entry.ts';
import type { AskedKind, Entrance, LaunchRequest, OutsideCall, RunOwner, RunWork } from './launch-request.ts';
import { createQueuedPlans, type QueuedPlanDeps } from './queued-plans.ts';
import { agentRunKey, continuationKey, type QueuedRunPayload } from './queued-run.ts';
import type { QueuedRuns } from './queued-runs.ts';
import { assertMayStart, failureError, type MayStartDeps, mayStart } from './refusals.ts';
import { keepRefusal } from './refused-items.ts';
import { type RequestedWorkDeps, requestedWork } from './requested-work.ts';
import { runPlan } from './run-plan.ts';

/**
 * Why a job has no run now: it was closed meanwhile, the process ends, its session waits for a decision, another run of
 * the session comes first, or an operator has stopped its agent.
 */
export type NotTaken = 'Canceled' | 'Released' | 'Blocked' | 'NotNext' | 'Held';

export interface LaunchDeps extends MayStartDeps, RequestedWorkDeps, QueuedPlanDeps {
  readonly authorization: Pick<RunAuthorization, 'require'>;
  readonly attachments: RequestedWorkDeps['attachments'] & QueuedPlanDeps['attachments'];
  readonly sessions: SessionPlaces;
  readonly engine: Pick<RunEngine, 'start' | 'stopped' | 'active' | 'cancel'>;
  readonly queued: Pick<QueuedRuns, 'accept'>;
  readonly detached: Pick<DetachedRuns, 'recordFailed'>;
  /** Closes a run that may not start, at once. */
  readonly doors: FlowDoors;
  /** Null: runs are neither counted nor limited. */
  readonly quotas: Pick<ActiveQuotas, 'admission' | 'counters' | 'countUnrecorded'> | null;
  readonly recordingEnabled: boolean;
  /** Asks the process that has the run to cancel it; false: that is switched off, or the run is closed. */
  readonly cancelElsewhere: (
    tenantId: string,
    runId: string,
    cause: 'Interrupted' | 'RolledBack',
    by: string | null,
  ) => Promise<boolean>;
  readonly newId: () => string;
}

/** How quotas count a run: it waits for its place, is answered at once, or was counted when its turn began. */
const quotaOf: Readonly<Record<AskedKind, 'wait' | 'now' | null>> = {
  request: 'wait',
  answers: null,
  queued: 'now',
  judge: 'wait',
  replay: 'wait',
};

/** Of a request the agent, or why it does not compile; else the work, which brings its agent. */
type Subject = CompiledAgent | CompileError | NonNullable<LaunchRequest['work']>;

interface Prepared {
  readonly work: RunWork;
  readonly owner: RunOwner;
  readonly runId: string;
}

/** The one way in for runs. Design: docs/design/engine.md. */
export const createLaunch = (deps: LaunchDeps) => {
  const { sessions, quotas, engine } = deps;
  const plans = createQueuedPlans(deps);

  /** The host is told the paused run, too, that answers go on from. */
  const authoriseAnswers = async ({ context, agentName, target, body }: LaunchRequest): Promise<void> => {
    const [open] = await sessions.open(context.tenantId, body.sessionId ?? '');
    const source = open === undefined ? {} : { runId: open.runId };
    await deps.authorization.require(context, 'Start', { resource: 'Run', agentName, ...target, ...source });
  };

  /** Null: there is nobody to ask. */
  const authorise = (request: LaunchRequest): Promise<void> | null => {
    const { kind, context, agentName, target } = request;
    if (kind === 'answers') return authoriseAnswers(request);
    return deps.authorization.require(context, 'Start', { resource: 'Run', agentName, ...target });
  };

  const owned = (request: LaunchRequest): Entrance | Promise<Entrance> => {
    const { tenantId, principal } = request.context;
    const ownerId = sessions.ownerOf(tenantId, request.body.sessionId ?? null, principal);
    return ownerId instanceof Promise ? ownerId.then((id) => ({ request, ownerId: id })) : { request, ownerId };
  };

  /** The agent as it is now. Answers go on in the one that has asked: what they allow was asked for with its instructions and tools. */
  const agentFor = async ({ agentName, context: { tenantId, trace }, body }: LaunchRequest): Promise<CompiledAgent> => {
    const sessionId = hasAnswers(body) ? (body.sessionId ?? null) : null;
    const isOwn = sessionId !== null && (await sessions.agentOf(tenantId, sessionId)) === agentName;
    const paused = isOwn ? await sessions.pausedIn(tenantId, sessionId) : null;
    if (paused === null) return deps.agents.compile(tenantId, agentName, trace);
    return deps.agents.compileVersion(tenantId, agentName, paused.version, paused.savedAt);
  };

  const subjectOf = async (request: LaunchRequest): Promise<Subject> => {
    const { work, outside } = request;
    if (work !== null) return work;
    try {
      const agent = await agentFor(request);
      return outside === undefined ? agent : outside.adjusted(agent);
    } catch (error) {
      if (error instanceof CompileError) return error;
      throw error;
    }
  };

  /** The place that a run has among those that quotas allow from now on; null: places are not limited. */
  const admit = async (
    { kind, agentName, body, context }: LaunchRequest,
    subject: Subject,
  ): Promise<Admission | null> => {
    const { tenantId, signal } = context;
    const sessionId = body.sessionId ?? null;
    const sessionAgent = sessionId === null ? null : await sessions.agentOf(tenantId, sessionId);
    if (sessionAgent !== null && sessionAgent !== agentName)
      throw new AcpError('session-agent-mismatch', `Session "${sessionId}" belongs to agent "${sessionAgent}".`);
    const quota = quotaOf[kind];
    if (quotas === null || quota === null) return null;
    const agent = typeof subject === 'function' || subject instanceof CompileError ? null : subject;
    return quotas.admission.admit({ tenantId, agentName, mayWait: quota === 'wait', agent, signal });
  };

  /** A run has the id of its admission, so that what records it settles the hold of its place. */
  const runIdOf = (admission: Admission | null): string => admission?.runId ?? deps.newId();

  /** Keeps that a run was asked for whose agent does not compile. */
  const refuse = async (
    request: LaunchRequest,
    runId: string,
    owner: RunOwner,
    error: CompileError,
  ): Promise<never> => {
    const failure = compileFailure(error);
    const { context, agentName, body, isStreaming, target } = request;
    await deps.detached.recordFailed({
      runId,
      tenantId: context.tenantId,
      agentName,
      agentVersion: error.version,
      isStreaming,
      sessionId: body.sessionId ?? null,
      attribution: owner,
      failure,
      ...(request.kind === 'replay' && target.runId ? { replayOfRunId: target.runId } : {}),
    });
    throw failureError(failure, runId);
  };

  /** What the run does, checked once it has its place: an admission may take a while. */
  const prepare = async ({ request, ownerId }: Entrance, subject: Subject, runId: string): Promise<Prepared> => {
    const { context, agentName, kind } = request;
    const reading = mayStart(deps, context.tenantId, agentName);
    if (reading !== null) await reading;
    if (typeof subject !== 'function') {
      const { work, owner } = await requestedWork(deps, request, runId, ownerId, subject, refuse);
      return { work, owner, runId };
    }
    const asked = deps.attribution.of(context, { agentName, sessionId: null });
    const owner = { ...(asked instanceof Promise ? await asked : asked), ownerId };
    const work = await subject(runId).catch((error: unknown) => {
      if (error instanceof CompileError && kind === 'replay') return refuse(request, runId, owner, error);
      throw error;
    });
    return { work, owner, runId };
  };

  /** The request of another API, with what its run is given. */
  const namedBy = async ({ request, ownerId }: Entrance, outside: OutsideCall, runId: string): Promise<Entrance> => ({
    request: { ...request, ...(await outside.parts(runId)) },
    ownerId,
  });

  const place = ({ request }: Entrance, sessionId: string, { work, runId }: Prepared): Promise<Placed> => {
    const { context, agentName, body } = request;
    const { tenantId, principal } = context;
    return sessions.place({
      context,
      body,
      tenantId,
      sessionId,
      agentName,
      runId,
      principal,
      current: () => currentRequest(deps, request, work.attachments ?? []),
      stop(holderId, cause, by) {
        const holder = engine.active(holderId);
        if (holder !== undefined) engine.cancel(holder, cause, by);
        return holder !== undefined;
      },
      stopElsewhere: (holderId, cause, by) => deps.cancelElsewhere(tenantId, holderId, cause, by),
    });
  };

  const planOf = async (
    { request }: Entrance,
    prepared: Prepared,
    placed: Placed | null,
    admission: Admission | null,
  ): Promise<RunPlan> => {
    const { context, agentName, body, isStreaming } = request;
    const { tenantId, principal, requestId } = context;
    const { work, runId, owner } = prepared;
    const from = placed?.continuedFromRunId ?? null;
    // A run that goes on is for whom its source was, whoever answers.
    const source = from === null ? undefined : await deps.store.get(tenantId, from);
    const { userId, labels } = source === undefined ? owner : storedAttribution(source);
    const unrecordedCount =
      deps.recordingEnabled || quotas === null
        ? null
        : await quotas.countUnrecorded(tenantId, agentName, runId, from === null);
    return runPlan({
      ...work,
      id: runId,
      tenantId,
      requestId,
      sessionId: body.sessionId ?? null,
      session: placed?.session ?? null,
      waiting: placed?.waiting ?? null,
      resume: placed?.resume ?? work.resume ?? null,
      given: request.given ?? work.given ?? null,
      asked: request.asked ?? work.asked ?? null,
      asksNobody: request.outside !== undefined || work.asksNobody === true,
      opening: request.opening ?? [],
      continuedFromRunId: from,
      isStreaming,
      principal,
      userId,
      ownerId: owner.ownerId,
      labels,
      job: request.item?.jobOf(runId) ?? null,
      createdAt: deps.now(),
      unrecordedCount,
      limits: request.exposed?.limits ?? null,
      isUnchecked: admission?.isChecked === false,
      trace: { parent: context.trace ?? null, link: null },
    });
  };

  /** Whoever asked from elsewhere keeps the run's id before the run begins. */
  const reserve = async ({ item, exposed }: LaunchRequest, runId: string): Promise<void> => {
    await item?.reserve(runId);
    await exposed?.reserve?.(runId);
  };

  const isHeld = (tenantId: string, agentName: string): boolean => deps.stops.reason(tenantId, agentName) !== null;

  /** The plan of a job whose place in line has come; a word when there is nothing to start. */
  const planInPlace = async (job: QueuedJob, read: FoundRun | null): Promise<RunPlan | NotTaken> => {
    const found = read ?? (await deps.store.withLog(job.tenantId, job.id));
    // The run of a continuation has no row before it starts.
    const row = found === 'AsAccepted' ? undefined : found.row;
    const day = found === 'AsAccepted' ? (job.payload as QueuedRunPayload).quotaDay : row?.quota_day;
    if (day) quotas?.counters.adopt({ id: job.id, tenantId: job.tenantId, agentName: job.targetName, day });
    const waits =
      row === undefined ? found === 'AsAccepted' || job.handlerKey === continuationKey : row.status === 'Queued';
    if (!waits) return 'Canceled';
    if (engine.stopped) return 'Released';
    const plan = await plans.prepare(job, found);
    const { request } = job.payload as Partial<QueuedRunPayload>;
    // A turn that goes on has passed the check when it began.
    if (request !== undefined) await checkPrompt(deps.preflight, plan.agent, job.tenantId, request, plan.attachments);
    return isHeld(plan.tenantId, plan.agent.name) ? 'Held' : plan;
  };

  return {
    /** Refuses while the service ends, and while an operator has stopped the agent. */
    assertMayStart: (tenantId: string, agentName: string): void => assertMayStart(deps, tenantId, agentName),
    /** Authorises the caller and finds the owner. */
    enter(request: LaunchRequest): Entrance | Promise<Entrance> {
      const allowed = authorise(request);
      return allowed === null ? owned(request) : allowed.then(() => owned(request));
    },
    /** All that follows, for a run that executes here at once. */
    async start(entrance: Entrance): Promise<ActiveRun> {
      const { context, agentName, item, outside } = entrance.request;
      const reading = mayStart(deps, context.tenantId, agentName);
      if (reading !== null) await reading;
      const subject = await subjectOf(entrance.request);
      let admission: Admission | null = null;
      try {
        admission = await admit(entrance.request, subject);
      } catch (error) {
        if (item === undefined || typeof subject === 'function') throw error;
        throw await keepRefusal(deps, entrance, item, subject.version, error);
      }
      let placed: Placed | null = null;
      try {
        const runId = runIdOf(admission);
        const named = outside === undefined ? entrance : await namedBy(entrance, outside, runId);
        const prepared = await prepare(named, subject, runId);
        const sessionId = named.request.body.sessionId ?? null;
        if (sessionId !== null) placed = await place(named, sessionId, prepared);
        const plan = await planOf(named, prepared, placed, admission);
        await reserve(entrance.request, plan.id);
        const run = engine.start(plan);
        if (admission !== null) void run.log.opened.then(admission.settled);
        return run;
      } catch (error) {
        admission?.settled();
        // Best effort: the lock of a session lapses by itself.
        await placed?.leave().catch(() => undefined);
        throw error;
      }
    },
    /** All that follows, for a run that waits in the job queue; its id. */
    async queue(entrance: Entrance): Promise<string> {
      const { request } = entrance;
      const { context, agentName } = request;
      const reading = mayStart(deps, context.tenantId, agentName);
      if (reading !== null) await reading;
      if (!deps.recordingEnabled)
        throw new AcpError('run-recording-disabled', 'Queued runs need run recording, which is switched off.');
      const subject = await subjectOf(request);
      const admission = await admit(request, subject);
      try {
        const { work, owner, runId } = await prepare(entrance, subject, runIdOf(admission));
        await deps.queued.accept(request, runId, work.agent, owner, deps.doors);
        return runId;
      } catch (error) {
        throw error instanceof ConditionFailedError ? lapsedAdmission(error) : error;
      } finally {
        admission?.settled();
      }
    },
    /**
     * Whether a job that a worker has taken says all of its run: it is for no session, and nobody has had it before. Whoever
     * cancels the run meanwhile ends the job, or changes the row that the start needs as it was.
     */
    isAsAccepted({ handlerKey, attempt, waitedMs, cancel, payload }: QueuedJob): boolean {
      if (handlerKey !== agentRunKey || attempt !== 1 || waitedMs === null || cancel !== null) return false;
      const { request, resumes, quotaDay } = payload as QueuedRunPayload;
      return (request.sessionId ?? null) === null && resumes === undefined && quotaDay !== undefined;
    },
    /**
     * The run of a job that a worker has taken, with agent and session as they are by now; `read`: as it was just read, null:
     * it may have changed since. Throws a RunFailure that ends the run.
     */
    async take(job: QueuedJob, signal: AbortSignal, read: FoundRun | null): Promise<ActiveRun | NotTaken> {
      const { tenantId, targetName: agentName, id: runId } = job;
      const reading = deps.stops.current();
      if (reading !== null) await reading;
      // Not even prepared: an attempt that is held costs the run nothing.
      if (isHeld(tenantId, agentName)) return 'Held';
      const sessionId = await plans.sessionOf(job);
      const line = sessionId === null ? undefined : await sessions.line({ tenantId, sessionId, runId }, signal);
      if (line === 'Closed') return 'Canceled';
      if (line === 'NotNext') return line;
      // In line it may have waited.
      const plan = await planInPlace(job, line === undefined ? read : null).catch((error: unknown) => {
        line?.stepAside();
        throw error;
      });
      if (typeof plan === 'string') {
        line?.stepAside();
        return plan;
      }
      if (plan.sessionId === null) return engine.start(plan);
      const run = { tenantId, sessionId: plan.sessionId, agentName, runId, principal: plan.principal };
      const begun = await sessions.begin(run, { resume: plan.resume, resumes: plan.continuedFromRunId });
      if (begun === null) return 'Blocked';
      // The stop may have come while the session was taken.
      const started = await sessions.keepOrStepBack(begun.session, async () =>
        isHeld(tenantId, plan.agent.name) ? null : engine.start(runPlan({ ...plan, ...begun })),
      );
      if (started !== null) return started;
      await sessions.stepBack(begun.session);
      return 'Held';
    },
  };
};

export type Launch = ReturnType<typeof createLaunch>;
