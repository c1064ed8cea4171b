import { parsedArguments } from '../../../core/documents/json-depth.ts';
import { ModelCallError } from '../../../providers/models/model-error.ts';
import type {
  ModelCall,
  ModelFinish,
  ModelPart,
  ModelPrompt,
  ModelToolCall,
} from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledTarget } from '../../compiled-agent.ts';
import type { ContentPart, ProviderMetadata } from '../../context/index.ts';
import { callWithinQuotas } from '../../control/index.ts';
import type { ModelPorts } from '../turn-ports.ts';
import { addCallUsage, announceUsage } from './call-usage.ts';
import { completeHostedCalls, hostedCallPart, hostedResultPart } from './hosted-call.ts';
import { guardedMessage, type HeldPart } from './message-guard.ts';
import { callProvider } from './provider-call.ts';
import { cacheableCall, replayedParts } from './response-cache.ts';

/** What the model answered in one turn. */
export interface ModelTurn {
  readonly messageId: string;
  readonly text: string;
  readonly contents: readonly ContentPart[];
  readonly toolCalls: readonly ModelToolCall[];
  /** By call: arguments that guards have masked, as they may be kept; null: as they are. */
  readonly keptInputs: readonly (string | null)[];
  readonly finish: ModelFinish;
}

interface Collected {
  /** Deltas go out as they come. */
  readonly isLive: boolean;
  /** Nothing of the message is kept before guards have seen the whole. */
  readonly isInspected: boolean;
  text: string;
  reasoning: string;
  readonly contents: HeldPart[];
  readonly toolCalls: ModelToolCall[];
  finish: ModelFinish | null;
  /** Answered from the response cache: no provider was called. */
  fromCache: boolean;
  /** Keeps the answer in the response cache. */
  keep: () => void;
}

/**
 * A search of the provider is over before anybody could be asked about it: it is offered where nobody has to be. A
 * replay that is not live repeats no search.
 */
const webSearchOf = ({ plan }: ActiveRun, ports: ModelPorts): ModelCall['webSearch'] & string =>
  ports.tools.authorizer === null && (plan.replay === null || plan.replay.isLive) ? 'offered' : 'withheld';

/** The call of the binding's own model. */
const callFor = (run: ActiveRun, ports: ModelPorts, prompt: ModelPrompt, withTools: boolean): ModelCall => {
  const binding = run.plan.agent.model;
  return {
    model: binding.model,
    prompt,
    tools: run.plan.agent.modelTools,
    toolChoice: withTools ? 'auto' : 'none',
    temperature: binding.temperature,
    topP: binding.topP,
    maxOutputTokens: binding.maxOutputTokens,
    reasoningEffort: binding.reasoningEffort,
    responseFormat: binding.responseFormat,
    settings: binding.settings,
    ...(run.plan.agent.webSearch ? { webSearch: webSearchOf(run, ports) } : {}),
    parallelToolCalls: binding.allowConcurrentToolCalls,
    signal: run.signal,
    callNumber: run.modelCalls,
    requestId: run.plan.requestId,
  };
};

/** Applies one part; the text so far also stays on the run, for the case that it is cut off. */
const take = (
  run: ActiveRun,
  ports: ModelPorts,
  target: CompiledTarget,
  messageId: string,
  part: ModelPart,
  into: Collected,
  reasoning: { text: string },
): void => {
  switch (part.type) {
    case 'text-delta':
      into.text += part.text;
      if (!into.isInspected) run.partialText = into.text;
      if (!run.hasText) {
        run.hasText = true;
        ports.metrics.firstDelta(run, ports.now() - run.startedAt);
      }
      if (into.isLive) run.log.delta('message.delta', messageId, part.text);
      return;
    case 'reasoning-delta':
      reasoning.text += part.text;
      into.reasoning += part.text;
      if (into.isLive) run.log.delta('reasoning.delta', messageId, part.text);
      return;
    case 'reasoning-end': {
      const metadata = part.providerMetadata as ProviderMetadata | undefined;
      // Reasoning goes back to a provider only where it wants it back, which it shows by signing it.
      if (metadata !== undefined)
        into.contents.push({ type: 'Reasoning', text: reasoning.text, providerMetadata: metadata });
      reasoning.text = '';
      return;
    }
    case 'tool-call':
      into.toolCalls.push(part);
      return;
    case 'hosted-call':
      into.contents.push(into.isInspected ? part : hostedCallPart(run, ports, part, target.provider.name));
      return;
    case 'hosted-result':
      into.contents.push(into.isInspected ? part : hostedResultPart(run, ports, part));
      return;
    case 'finish':
      into.finish = part;
      return;
  }
};

const takeStream = async (
  parts: AsyncIterable<ModelPart>,
  taken: (part: ModelPart) => void,
  firstPart: () => void,
): Promise<void> => {
  let begun = false;
  for await (const part of parts) {
    if (!begun) firstPart();
    begun = true;
    taken(part);
  }
};

const callTarget = async (
  run: ActiveRun,
  ports: ModelPorts,
  target: CompiledTarget,
  call: ModelCall,
  messageId: string,
  into: Collected,
  attempt: number,
): Promise<void> => {
  // Before the cache: an answer of a provider that the tenant may no longer call is not given either.
  const opened = ports.access.open(run.plan.tenantId, target.provider);
  const reasoning = { text: '' };
  const cacheable = cacheableCall(run, ports.responses, target, call);
  const hit = cacheable === null ? null : await cacheable.find();
  if (cacheable !== null) ports.metrics.cacheAsked(target, hit !== null);
  if (hit !== null) {
    run.signal.throwIfAborted();
    into.fromCache = true;
    if (run.trace !== null) run.trace.modelCall = null;
    for (const part of replayedParts(hit)) take(run, ports, target, messageId, part, into, reasoning);
    return;
  }
  const parts: ModelPart[] = [];
  const streams = run.tellsParts && (target.catalog?.supportsStreaming ?? true);
  const taken = (part: ModelPart): void => {
    take(run, ports, target, messageId, part, into, reasoning);
    if (cacheable !== null) parts.push(part);
  };
  let isWhole = true;
  await callWithinQuotas(run, ports, target, call, async (allowed, isCut) => {
    await callProvider(run, ports, target, opened, allowed, { attempt, streams }, async (sent, firstPart) => {
      if (streams) await takeStream(opened.provider.stream(sent), taken, firstPart);
      else for (const part of await opened.provider.generate(sent)) taken(part);
      return into.finish;
    });
    // An answer that a quota has cut short, or kept from searching, is no answer to an equal call.
    isWhole = allowed.webSearch === call.webSearch && !(isCut && into.finish?.finishReason === 'Length');
    return into.finish;
  });
  if (cacheable !== null && isWhole) into.keep = () => cacheable.keep(parts);
};

/** The first error stands for the call; its message names every provider that was tried. */
const allFailed = (errors: readonly ModelCallError[]): ModelCallError => {
  const [first] = errors;
  if (first === undefined) throw new Error('No model target was tried.');
  if (errors.length === 1) return first;
  const tried = [...new Set(errors.map((error) => `"${error.provider}"`))].join(', ');
  return new ModelCallError(first.type, `${first.message} Providers tried: ${tried}.`, {
    provider: first.provider,
    httpStatus: first.httpStatus ?? undefined,
    retryAfterMs: first.retryAfterMs ?? undefined,
    reason: first.reason ?? undefined,
    cause: first,
  });
};

/** Calls the binding's model, then its fallbacks while nothing has reached the client. */
const callWithFallbacks = async (
  run: ActiveRun,
  ports: ModelPorts,
  first: ModelCall,
  messageId: string,
): Promise<{ target: CompiledTarget; collected: Collected }> => {
  const targets: readonly CompiledTarget[] = [run.plan.agent.model, ...run.plan.agent.model.fallbacks];
  const errors: ModelCallError[] = [];
  const { guards } = ports;
  const isLive = run.tellsParts && (guards === null || !guards.output || !guards.buffersStreams);
  for (const [index, target] of targets.entries()) {
    const collected: Collected = {
      isLive,
      isInspected: guards !== null,
      text: '',
      reasoning: '',
      contents: [],
      toolCalls: [],
      finish: null,
      fromCache: false,
      keep: () => undefined,
    };
    const before = run.log.nextSequence;
    try {
      const call = index === 0 ? first : { ...first, model: target.model, settings: target.settings };
      await callTarget(run, ports, target, call, messageId, collected, index + 1);
      return { target, collected };
    } catch (error) {
      if (!(error instanceof ModelCallError) || run.signal.aborted) throw error;
      errors.push(error);
      const next = targets[index + 1];
      const delivered = run.log.nextSequence !== before;
      if (!error.mayFallBack || delivered || next === undefined) throw allFailed(errors);
      ports.metrics.fellBack(target, error.type);
      run.log.append('model.fallback-used', {
        fromProvider: target.provider.name,
        fromModel: target.model,
        toProvider: next.provider.name,
        toModel: next.model,
        errorClass: error.errorClass,
      });
    }
  }
  throw allFailed(errors);
};

/** What was never held, because no guard looks at it. */
const asContent = (part: HeldPart): ContentPart[] =>
  part.type === 'hosted-call' || part.type === 'hosted-result' ? [] : [part];

/** What the history keeps of the answer. */
const contentsOf = ({
  text,
  contents,
  toolCalls,
  keptInputs,
}: Omit<ModelTurn, 'messageId' | 'finish'>): ContentPart[] => {
  const parts = completeHostedCalls(contents);
  if (text !== '') parts.push({ type: 'Text', text });
  for (const [index, call] of toolCalls.entries())
    parts.push({
      type: 'ToolCall',
      toolCallId: call.toolCallId,
      toolName: call.toolName,
      arguments: parsedArguments(keptInputs[index] ?? call.input),
      ...(call.providerMetadata === undefined ? {} : { providerMetadata: call.providerMetadata as ProviderMetadata }),
    });
  return parts;
};

/**
 * One model call: budget first, then deltas as they come, or once guards have seen the whole message, then the message
 * and its usage. `isRepair`: a rejected answer is asked for again, without tools, which is not the end of the rounds.
 */
export const modelTurn = async (
  run: ActiveRun,
  ports: ModelPorts,
  prompt: ModelPrompt,
  withTools: boolean,
  isRepair = false,
): Promise<ModelTurn> => {
  run.budget.check();
  run.modelCalls += 1;
  run.partialText = '';
  const messageId = ports.newId();
  const call = callFor(run, ports, prompt, withTools);
  run.callRecord?.sent(run.modelCalls, run.plan.agent.model.provider.name, call);
  const { target, collected } = await callWithFallbacks(run, ports, call, messageId);
  const { finish, isLive } = collected;
  if (finish === null) throw new Error('A model provider ended a stream without a finish part.');
  run.target = target;
  // A hit has neither usage nor cost, and its null cost must not make the cost of the other calls unknown.
  if (!collected.fromCache) addCallUsage(run, ports, target, finish);
  // A call after the last allowed round may still name tools; they are not executed and not kept.
  const toolCalls = withTools ? collected.toolCalls : [];
  run.callRecord?.answered(toolCalls.map((call) => call.toolCallId));
  const finishReason = toolCalls.length > 0 ? 'ToolCalls' : withTools || isRepair ? finish.finishReason : 'Iterations';
  const answer =
    ports.guards === null
      ? { text: collected.text, toolCalls, keptInputs: [], contents: collected.contents.flatMap(asContent) }
      : await guardedMessage(run, ports, ports.guards, {
          ...collected,
          messageId,
          toolCalls,
          finishReason,
          provider: target.provider.name,
          isHeld: run.tellsParts && !isLive,
        });
  // The cache has answers that no guard has changed: what a guard replaced is kept nowhere.
  if (!('isUnchanged' in answer) || answer.isUnchanged) collected.keep();
  run.log.append('message.completed', { messageId, text: answer.text, finishReason });
  announceUsage(run, ports);
  run.partialText = '';
  return { ...answer, messageId, contents: contentsOf(answer), finish };
};
