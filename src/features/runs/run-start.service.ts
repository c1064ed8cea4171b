import { AcpError } from '../../contract/errors.ts';
import type { OperationInput, OperationReply, StreamReply } from '../../contract/operation.ts';
import type { AgentRunRequest } from '../../contract/run-request.ts';
import { type Attribution, credentialAttribution } from '../../core/caller/attribution.ts';
import type { RunAuthorization } from '../../core/caller/run-authorization.ts';
import type { CallContext } from '../../core/context.ts';
import type { ActiveRun, RunPlan } from '../../engine/active-run.ts';
import { type AgentSource, type CompiledAgent, CompileError, compileFailure } from '../../engine/compiled-agent.ts';
import { notAdmitted, type RunEngine } from '../../engine/lifecycle/index.ts';
import type { PriceList } from '../../engine/pricing.ts';
import type { PayloadSettings } from '../../engine/record/index.ts';
import { problemCode, type RunFailure } from '../../engine/run-failure.ts';
import type { SessionPauses } from '../approvals/index.ts';
import type { RunAttachmentPort } from '../attachments/index.ts';
import type { ActiveQuotas, Admission } from '../quotas/index.ts';
import { type IdempotencyKeys, requestFingerprint, type StoredAnswer } from './idempotency.store.ts';
import { assertMayStart, type MayStartDeps } from './launch/may-start.ts';
import { runPlan } from './launch/run-plan.ts';
import { answerBody, warningHeader } from './run-answer.ts';
import { busyError } from './run-conflict.ts';
import type { DetachedRuns } from './run-detached.ts';
import type { RunOwner, RunQueue } from './run-queue.ts';
import { storedAttribution } from './run-record.ts';
import { checkIdempotencyKey, checkRunRequest, type RunMode, runMode } from './run-request.rules.ts';
import { createRunSessions, hasAnswers, keepOrFree, type RunSessionDeps } from './run-session.ts';
import type { runOperations } from './runs.operations.ts';
import type { RunStore } from './runs.store.ts';

type StartOperation = (typeof runOperations)['start'];
type StartInput = OperationInput<StartOperation>;
type StartReply = OperationReply<StartOperation>;
type PlainReply = Exclude<StartReply, StreamReply>;

export interface RunStartDeps extends RunSessionDeps, MayStartDeps {
  readonly authorization: RunAuthorization;
  readonly attribution: Attribution;
  readonly store: Pick<RunStore, 'get'>;
  readonly agents: AgentSource;
  readonly engine: RunEngine;
  readonly attachments: Pick<RunAttachmentPort, 'named'>;
  readonly queue: RunQueue;
  readonly detached: DetachedRuns;
  readonly keys: IdempotencyKeys;
  readonly pauses: RunSessionDeps['pauses'] & Pick<SessionPauses, 'check' | 'begin' | 'open'>;
  /** Null: runs are neither counted nor limited. */
  readonly quotas: Pick<ActiveQuotas, 'admission' | 'countUnrecorded'> | null;
  readonly prices: PriceList;
  readonly prefix: string;
  readonly settings: {
    readonly recordingEnabled: boolean;
    readonly payloads: PayloadSettings;
    readonly idempotency: { readonly enabled: boolean; readonly maxKeyLength: number };
  };
  readonly now: () => number;
  readonly newId: () => string;
}

/** The compiled agent, or why it does not compile; an unknown one is thrown at once. */
const compile = async (
  { agents }: RunStartDeps,
  tenantId: string,
  name: string,
  trace: CallContext['trace'],
): Promise<CompiledAgent | CompileError> => {
  try {
    return await agents.compile(tenantId, name, trace);
  } catch (error) {
    if (error instanceof CompileError) return error;
    throw error;
  }
};

const noSession: Pick<RunPlan, 'session' | 'waiting'> = { session: null, waiting: null };

type Checked = Pick<RunPlan, 'agent' | 'parameters' | 'attachments'> & { readonly owner: RunOwner };

const runHeaders = (deps: RunStartDeps, runId: string): Record<string, string> => ({
  'X-Run-Id': runId,
  'Content-Location': `${deps.prefix}/api/runs/${runId}/events`,
});

/** The problem with which a run that did not complete answers a JSON caller. */
export const failureError = (failure: RunFailure, runId: string): AcpError =>
  new AcpError(problemCode(failure.errorClass, failure.type), failure.message, {
    cause: failure.cause,
    details: {
      runId,
      errorType: failure.type,
      ...(failure.retryAfterMs === null ? {} : { retryAfterMs: failure.retryAfterMs }),
      ...(failure.findings === null ? {} : { errors: failure.findings }),
      ...(failure.provider === null ? {} : { provider: failure.provider }),
      ...failure.guard,
    },
  });

const overheadHeader = 'X-Acp-Overhead-Ms';

/** Milliseconds that the service itself took: all time since the request, less the waits for model providers and tools. */
const overheadOf = (run: ActiveRun, receivedAt: number): string =>
  Math.max(0, performance.now() - receivedAt - run.waits.totalMs).toFixed(2);

const cancelOnDisconnect = (deps: RunStartDeps, context: CallContext, run: ActiveRun): void => {
  const cancel = () => deps.engine.cancel(run, 'Disconnected', context.principal.actor);
  context.signal.addEventListener('abort', cancel, { once: true });
  void run.done.then(() => context.signal.removeEventListener('abort', cancel));
  if (context.signal.aborted) cancel();
};

/** Checks in the order of the first refusal, then starts, queues or streams. */
export const createRunStart = (deps: RunStartDeps) => {
  const sessionOf = createRunSessions(deps);

  const compileFailed = async (
    context: CallContext,
    name: string,
    error: CompileError,
    turn: { readonly isStreaming: boolean; readonly sessionId: string | null; readonly owner: RunOwner },
  ): Promise<never> => {
    const failure = compileFailure(error);
    const runId = deps.newId();
    await deps.detached.recordFailed({
      runId,
      tenantId: context.tenantId,
      agentName: name,
      agentVersion: error.version,
      isStreaming: turn.isStreaming,
      sessionId: turn.sessionId,
      attribution: turn.owner,
      failure,
    });
    throw failureError(failure, runId);
  };

  /** The agent of a request, and the place that its run has from now on; null: places are not limited. */
  const admit = async (
    { tenantId, trace, signal }: CallContext,
    name: string,
    body: AgentRunRequest,
    mode: RunMode,
  ): Promise<{ compiled: CompiledAgent | CompileError; admission: Admission | null }> => {
    const compiled = await compile(deps, tenantId, name, trace);
    const sessionId = body.sessionId ?? null;
    const owner = sessionId === null ? null : await deps.sessions.agentOf(tenantId, sessionId);
    if (owner !== null && owner !== name)
      throw new AcpError('session-agent-mismatch', `Session "${sessionId}" belongs to agent "${owner}".`);
    // A turn that goes on was admitted when it began.
    const agent = compiled instanceof CompileError ? null : compiled;
    const request = { tenantId, agentName: name, mayWait: mode !== 'queued', agent, signal };
    const asked = deps.quotas === null || hasAnswers(body) ? null : deps.quotas.admission.admit(request);
    return { compiled, admission: asked === null ? null : await asked };
  };

  const checkSession = async (
    context: CallContext,
    name: string,
    body: AgentRunRequest,
    sessionId: string,
  ): Promise<void> => {
    await deps.pauses.check(context, name, sessionId, body);
    if ((body.concurrency ?? 'Reject') !== 'Reject' || !deps.sessions.busy(context.tenantId, sessionId)) return;
    deps.busy('Reject');
    throw busyError(sessionId);
  };

  /** What is checked once a run has its place: an admission may take a while. */
  const check = async (
    context: CallContext,
    name: string,
    body: AgentRunRequest,
    mode: RunMode,
    ownerId: string | null,
    compiled: CompiledAgent | CompileError,
  ): Promise<Checked> => {
    const { tenantId } = context;
    assertMayStart(deps, tenantId, name);
    const parameters = compiled instanceof CompileError ? {} : compiled.resolveParameters(body.parameters ?? null);
    const sessionId = body.sessionId ?? null;
    const ids = body.attachmentIds ?? [];
    const attachments = ids.length === 0 ? [] : await deps.attachments.named(context, ids, sessionId);
    const asked = hasAnswers(body)
      ? credentialAttribution(context.principal)
      : deps.attribution.of(context, { agentName: name, sessionId });
    const owner = { ...(asked instanceof Promise ? await asked : asked), ownerId };
    if (sessionId !== null) await checkSession(context, name, body, sessionId);
    if (compiled instanceof CompileError)
      return compileFailed(context, name, compiled, { isStreaming: mode === 'stream', sessionId, owner });
    if (deps.preflight !== null) await deps.preflight(compiled, tenantId, body, attachments);
    return { agent: compiled, parameters, attachments, owner };
  };

  const plan = async (
    context: CallContext,
    { params: { name }, body }: StartInput,
    mode: RunMode,
    { agent, parameters, attachments, owner }: Checked,
    isChecked: boolean,
  ): Promise<RunPlan> => {
    const { tenantId } = context;
    const id = deps.newId();
    const sessionId = body.sessionId ?? null;
    const { session, waiting } =
      sessionId === null ? noSession : await sessionOf(context, body, sessionId, name, id, attachments);
    const continued =
      session === null
        ? { resume: null, continuedFromRunId: null }
        : await keepOrFree(deps.release, session, async () => {
            const begun = await deps.pauses.begin(context, id, name, session, body);
            // The run that goes on is for whom its source was, whoever answers.
            const from = begun.continuedFromRunId;
            const source = from === null ? undefined : await deps.store.get(tenantId, from);
            return source === undefined ? begun : { ...begun, ...storedAttribution(source) };
          });
    const counted =
      deps.settings.recordingEnabled || deps.quotas === null
        ? null
        : await deps.quotas.countUnrecorded(tenantId, name, id, continued.continuedFromRunId === null);
    return runPlan({
      id,
      tenantId,
      requestId: context.requestId,
      agent,
      message: body.message ?? null,
      documents: body.documents ?? [],
      attachments,
      culture: body.culture ?? null,
      parameters,
      sessionId,
      session,
      waiting,
      isStreaming: mode === 'stream',
      principal: context.principal,
      ...owner,
      ...continued,
      createdAt: deps.now(),
      unrecordedCount: counted,
      isUnchecked: !isChecked,
      trace: { parent: context.trace ?? null, link: null },
    });
  };

  const begin = async (
    context: CallContext,
    input: StartInput,
    mode: RunMode,
    ownerId: string | null,
  ): Promise<ActiveRun> => {
    const { name } = input.params;
    const { compiled, admission } = await admit(context, name, input.body, mode);
    try {
      const checked = await check(context, name, input.body, mode, ownerId, compiled);
      const isChecked = admission?.isChecked !== false;
      const run = deps.engine.start(await plan(context, input, mode, checked, isChecked));
      if (admission !== null) void run.log.opened.then(admission.settled);
      return run;
    } catch (error) {
      admission?.settled();
      throw error;
    }
  };

  const runToEnd = async (context: CallContext, input: StartInput, ownerId: string | null): Promise<PlainReply> => {
    const receivedAt = context.receivedAt ?? performance.now();
    const run = await begin(context, input, 'json', ownerId);
    if (input.query.onDisconnect === 'cancel') cancelOnDisconnect(deps, context, run);
    const outcome = await run.done;
    if (outcome.failure !== null) throw failureError(outcome.failure, run.id);
    return {
      status: 200,
      body: answerBody(deps, run, outcome),
      headers: { 'X-Run-Id': run.id, [overheadHeader]: overheadOf(run, receivedAt), ...warningHeader(run) },
    };
  };

  const queued = async (
    context: CallContext,
    { params: { name }, body }: StartInput,
    { agent, owner }: Checked,
  ): Promise<string> => {
    if ([...agent.tools.values()].some((entry) => entry.kind === 'tool' && entry.tool.descriptor.runsOnClient))
      throw new AcpError(
        'client-tools-need-a-client',
        `Agent "${name}" has a tool that runs on the client; a queued run has no client.`,
      );
    return deps.queue.accept(context, name, body, owner);
  };

  const accept = async (context: CallContext, input: StartInput, ownerId: string | null): Promise<PlainReply> => {
    if (!deps.settings.recordingEnabled)
      throw new AcpError('run-recording-disabled', 'Queued runs need run recording, which is switched off.');
    const { name } = input.params;
    const { compiled, admission } = await admit(context, name, input.body, 'queued');
    try {
      const checked = await check(context, name, input.body, 'queued', ownerId, compiled);
      const runId = await queued(context, input, checked);
      const location = `${deps.prefix}/api/runs/${runId}`;
      return {
        status: 202,
        body: { runId, jobId: runId, location, eventsLocation: `${location}/events` },
        headers: { Location: location, 'Preference-Applied': 'respond-async', 'X-Run-Id': runId },
      };
    } finally {
      admission?.settled();
    }
  };

  const answer = (
    context: CallContext,
    input: StartInput,
    mode: RunMode,
    ownerId: string | null,
  ): Promise<PlainReply> => {
    assertMayStart(deps, context.tenantId, input.params.name);
    return mode === 'queued' ? accept(context, input, ownerId) : runToEnd(context, input, ownerId);
  };

  const answerOnce = async (
    context: CallContext,
    input: StartInput,
    mode: RunMode,
    ownerId: string | null,
    key: string,
  ): Promise<PlainReply> => {
    checkIdempotencyKey(key, deps.settings.idempotency);
    const raw = context.rawBody ?? JSON.stringify(input.body);
    const claim = await deps.keys.claim(
      context.tenantId,
      ownerId,
      key,
      requestFingerprint(context.tenantId, context.method, context.path, raw),
    );
    if (claim.kind === 'replay')
      return {
        status: claim.answer.status,
        body: claim.answer.body,
        headers: { ...claim.answer.headers, 'Idempotency-Replayed': 'true' },
      } as PlainReply;
    const reply = await answer(context, input, mode, ownerId).catch(async (error: unknown) => {
      await claim.abandon();
      throw error;
    });
    // What the first answer took says nothing about a repeat.
    const { [overheadHeader]: _, ...headers } = reply.headers ?? {};
    const stored: StoredAnswer = { status: reply.status, headers, body: reply.body };
    await claim.complete(stored);
    return reply;
  };

  /** The paused run that a request with answers goes on from. */
  const sourceOf = async ({ tenantId }: CallContext, body: AgentRunRequest): Promise<{ runId?: string }> => {
    const [open] = await deps.pauses.open(tenantId, body.sessionId ?? '');
    return open === undefined ? {} : { runId: open.runId };
  };

  return async (context: CallContext, input: StartInput): Promise<StartReply> => {
    const mode = runMode(input.body, input.headers);
    checkRunRequest(input.body, mode);
    // Before the idempotency key: a stored answer is for callers that may start the run, too.
    const allowed = deps.authorization.require(context, 'Start', {
      resource: 'Run',
      agentName: input.params.name,
      sessionId: input.body.sessionId ?? null,
      ...(hasAnswers(input.body) ? await sourceOf(context, input.body) : {}),
    });
    if (allowed !== null) await allowed;
    // Before the idempotency key: a stored answer belongs to the owner of its session, too.
    const owner = deps.sessions.ownerOf(context.tenantId, input.body.sessionId ?? null, context.principal);
    const ownerId = owner instanceof Promise ? await owner : owner;
    const key = input.headers['idempotency-key'];
    if (key !== undefined) return await answerOnce(context, input, mode, ownerId, key);
    if (mode !== 'stream') return await answer(context, input, mode, ownerId);
    assertMayStart(deps, context.tenantId, input.params.name);
    const run = await begin(context, input, mode, ownerId);
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
