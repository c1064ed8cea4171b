import type { Json } from '../../../contract/schema.ts';
import type { Span } from '../../../core/telemetry/span.ts';
import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import { type ClientResult, normalizedArguments, type OpenCall } from '../../context/index.ts';
import { blockRun, type CallGuard, guardCall, holdCall, mayAsk, type WaitingCall } from '../../control/index.ts';
import { type ToolCallEntry, traceHeadersOf } from '../../record/index.ts';
import {
  canonicalText,
  outputLimit,
  prepareCall,
  type RegisteredTool,
  type ToolCallRequest,
  type ToolOutcome,
  truncateOutput,
} from '../../tools/index.ts';
import type { ToolPorts } from '../turn-ports.ts';
import { agentTool, type ChildCaller, remoteAgentTool } from './agent-tool.ts';
import { announceInvoking, recordPending } from './call-entry.ts';
import { announceCustom, recordAsked, recordSettled } from './call-record.ts';
import type { CallLine } from './side-by-side.ts';
import { endToolSpan, openToolSpan, spansBelow } from './tool-span.ts';

/** How a call ended, or what it waits for: nothing of it has happened yet, unless it is for answers. */
export interface CallResult {
  readonly outcome: ToolOutcome;
  readonly waiting: readonly WaitingCall[];
}

interface Attempt extends CallResult {
  /** Null: the call was not made. */
  readonly entry: ToolCallEntry | null;
}

const resolveTool = (run: ActiveRun, call: ModelToolCall, children: ChildCaller): RegisteredTool | undefined => {
  const compiled = run.plan.agent.tools.get(call.toolName);
  if (compiled === undefined) return undefined;
  if (compiled.kind === 'agent') return agentTool(call.toolName, compiled.agentName, run, call.toolCallId, children);
  const { tool } = compiled;
  return tool.remoteAgent === null ? tool : remoteAgentTool(tool, tool.remoteAgent, run, call.toolCallId, children);
};

/** The model's own arguments; a tool of the service that stores them gets what may be kept of them. */
const argumentsFor = ({ call, keptInput }: OpenCall, tool: RegisteredTool | undefined): string => {
  const text = tool?.storesArguments === true ? (keptInput ?? call.input) : call.input;
  return text === '' ? '{}' : text;
};

const requestOf = (
  run: ActiveRun,
  open: OpenCall,
  tool: RegisteredTool | undefined,
  span: Span | null,
): ToolCallRequest => {
  const { plan } = run;
  return {
    tool,
    toolName: open.call.toolName,
    toolCallId: open.call.toolCallId,
    argumentsText: argumentsFor(open, tool),
    run: {
      tenantId: plan.tenantId,
      agentName: plan.agent.name,
      runId: run.id,
      rootRunId: run.rootId,
      sessionId: plan.sessionId,
      userId: plan.userId,
    },
    principal: plan.principal,
    signal: run.signal,
    idempotencyKey: open.idempotencyKey,
    requestId: plan.requestId,
    // Without this process nobody has the arguments that were masked, and the call could not go on.
    mayAsk: open.keptInput === undefined && mayAsk(run),
    ...(typeof open.answer !== 'string' && open.answer.type === 'QuestionAnswers' ? { continued: open.answer } : {}),
    ...traceHeadersOf(span),
    ...spansBelow(run, span),
  };
};

const notMade = (outcome: ToolOutcome, waiting: readonly WaitingCall[] = []): Attempt => ({
  outcome,
  waiting,
  entry: null,
});

const unrecordedText = 'The call was not made, because it could not be recorded.';

const unrecorded = ({ call }: OpenCall, durationMs: number): ToolOutcome => ({
  status: 'failed',
  text: unrecordedText,
  error: unrecordedText,
  arguments: normalizedArguments(call.input),
  durationMs,
  usage: null,
  truncation: null,
  errorClass: 'UnrecordedCallError',
});

/** One for each question; the first has what the call goes on with. */
const askedCalls = (
  ports: ToolPorts,
  { call, idempotencyKey }: OpenCall,
  args: Json,
  { asked }: ToolOutcome,
): readonly WaitingCall[] =>
  (asked?.questions ?? []).map((question, index) => ({
    kind: 'question',
    call,
    idempotencyKey,
    requestId: ports.newId(),
    arguments: args,
    presentation: null,
    asked: { question, state: index === 0 ? (asked?.state ?? '') : null },
  }));

/** The checks, whoever has to be asked, the ledger entry, the body: each only where the one before lets the call go on. */
const attemptCall = async (
  run: ActiveRun,
  ports: ToolPorts,
  open: OpenCall,
  request: ToolCallRequest,
  guard: CallGuard | null,
  line: CallLine | null,
): Promise<Attempt> => {
  const startedAt = ports.now();
  const hooks = {
    ...(guard === null ? {} : { inspect: guard.result }),
    emit: (customType: string, payload: unknown) => announceCustom(run, ports, customType, payload),
  };
  const prepared = await prepareCall(request, hooks, ports.tools);
  if ('status' in prepared) return notMade(prepared);
  const { tool, canonicalArguments } = prepared;
  const hold = await holdCall(run, ports, open, tool, prepared.args);
  const isInLine = hold !== 'preApproved' || line === null || (await line.alone());
  if (run.signal.aborted || !isInLine) return notMade(prepared.stopped('canceled'));
  if (hold !== null && hold !== 'preApproved')
    return 'refused' in hold ? notMade(prepared.stopped(hold)) : notMade(prepared.stopped('waiting'), [hold]);
  const { keptInput } = open;
  const argumentsText = keptInput === undefined ? canonicalArguments : normalizedArguments(keptInput);
  const { entry, isRecorded } = await recordPending(run, ports, open, tool, argumentsText);
  if (!isRecorded) return { outcome: unrecorded(open, ports.now() - startedAt), waiting: [], entry };
  // A child run waits for its own model; what it does itself is work of this service.
  const isWait = run.plan.agent.tools.get(request.toolName)?.kind === 'tool';
  if (isWait) run.waits.enter();
  const outcome = await prepared.execute();
  if (isWait) run.waits.leave();
  return { outcome, waiting: askedCalls(ports, open, prepared.args, outcome), entry };
};

/** An outcome as it is kept and as the model has it. Results of a body were inspected before they were cut. */
const guardedOutcome = async (
  end: ToolOutcome,
  { keptInput }: OpenCall,
  guard: CallGuard | null,
  isReplayed: boolean,
): Promise<ToolOutcome> => {
  const outcome = keptInput === undefined ? end : { ...end, arguments: normalizedArguments(keptInput) };
  const { status } = outcome;
  const isInspected = status === 'waiting' || status === 'canceled' || (status === 'succeeded' && !isReplayed);
  return guard === null || isInspected ? outcome : guard.ended(outcome);
};

/** One call with its ledger entry before it and its record after it. */
export const runCall = async (
  run: ActiveRun,
  ports: ToolPorts,
  open: OpenCall,
  children: ChildCaller,
  line: CallLine | null,
): Promise<CallResult> => {
  const { call } = open;
  const tool = resolveTool(run, call, children);
  // What the caller's program would answer is no part of a recording: the call ends the run, as it did then.
  const isLeft = run.plan.asksNobody && tool?.descriptor.runsOnClient === true;
  // A recording knows a call by what was kept of it.
  const replay = isLeft ? null : (run.plan.replay?.tools?.answer(call.toolName, open.keptInput ?? call.input) ?? null);
  // A call that was refused or did not fit never began.
  if (replay !== null && tool !== undefined && replay.status !== 'denied')
    announceInvoking(run, ports, call, tool, replay.arguments);
  const span = openToolSpan(run, call, tool);
  const guard = ports.guards === null ? null : guardCall(run, ports.guards, call, tool, span);
  const { waiting, entry, ...attempt } =
    replay === null
      ? await attemptCall(run, ports, open, requestOf(run, open, tool, span), guard, line)
      : notMade(replay);
  const outcome = await guardedOutcome(attempt.outcome, open, guard, replay !== null);
  endToolSpan(run, ports, call, tool !== undefined, span, outcome);
  if (waiting.length > 0) {
    if (entry !== null) recordAsked(run, ports, outcome, entry);
    return { outcome, waiting };
  }
  // The process gave the call up, not the run: what became of it outside is unknown, and whoever goes on decides.
  if (outcome.status === 'canceled' && run.steps?.continues === true && run.stopReason?.kind !== 'cancel')
    return { outcome, waiting };
  recordSettled(run, ports, open, tool, outcome, entry ?? 'toolRefused');
  const block = guard?.block ?? null;
  if (block !== null && ports.guards !== null) throw await blockRun(run, ports.guards, block);
  return { outcome, waiting };
};

/** What the caller's own program answered: cut and recorded like the result of a body, without a duration. */
export const clientCall = (
  run: ActiveRun,
  ports: ToolPorts,
  open: OpenCall,
  { result, errorMessage }: ClientResult,
): CallResult => {
  const { call } = open;
  const compiled = run.plan.agent.tools.get(call.toolName);
  const tool = compiled?.kind === 'tool' ? compiled.tool : undefined;
  const limit = outputLimit(tool?.descriptor.maxOutputBytes ?? null, ports.tools.defaultMaxOutputBytes);
  const outcome: ToolOutcome = {
    ...(errorMessage === null
      ? { status: 'succeeded', error: null, ...truncateOutput(canonicalText(result), limit) }
      : { status: 'failed', error: errorMessage, text: errorMessage, truncation: null }),
    arguments: normalizedArguments(call.input),
    durationMs: null,
    usage: null,
    errorClass: errorMessage === null ? null : 'ToolError',
  };
  recordSettled(run, ports, open, tool, outcome, 'toolAnswered');
  return { outcome, waiting: [] };
};
