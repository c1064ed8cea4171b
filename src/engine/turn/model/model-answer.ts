import { ModelCallError } from '../../../providers/models/model-error.ts';
import type { ModelCall, ModelFinish, ModelPart, ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledTarget } from '../../compiled-agent.ts';
import type { ProviderMetadata } from '../../context/index.ts';
import { callWithinQuotas } from '../../control/index.ts';
import type { ModelPorts } from '../turn-ports.ts';
import { hostedCallPart, hostedResultPart } from './hosted-call.ts';
import type { HeldPart } from './message-guard.ts';
import { callProvider } from './provider-call.ts';
import { cacheableCall, replayedParts } from './response-cache.ts';

/** An answer as its parts come. */
interface ModelAnswer {
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

/** Applies one part; the text so far also stays on the run, for the case that it is cut off. */
const take = (
  run: ActiveRun,
  ports: ModelPorts,
  target: CompiledTarget,
  messageId: string,
  part: ModelPart,
  into: ModelAnswer,
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
        into.contents.push({ type: 'Reasoning', text: part.text ?? reasoning.text, providerMetadata: metadata });
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
  into: ModelAnswer,
  attempt: number,
): Promise<void> => {
  const reading = ports.access.current();
  if (reading !== null) await reading;
  // Before the cache: an answer of a provider that the tenant may no longer call is not given either.
  const opened = ports.access.open(run.plan.tenantId, target.provider);
  const reasoning = { text: '' };
  const cacheable = cacheableCall(run, ports.responses, target, call);
  const hit = cacheable === null ? null : await cacheable.find();
  if (cacheable !== null) ports.metrics.cacheAsked(target, hit !== null);
  if (hit !== null) {
    run.signal.throwIfAborted();
    into.fromCache = true;
    run.hasActed = true;
    if (run.trace !== null) run.trace.modelCall = null;
    for (const part of replayedParts(hit)) take(run, ports, target, messageId, part, into, reasoning);
    return;
  }
  const parts: ModelPart[] = [];
  const streams = run.tellsParts && call.vectors === undefined && (target.catalog?.supportsStreaming ?? true);
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
    // An answer that a quota has cut short or kept from searching, or that is paused, is no answer to an equal call.
    isWhole =
      allowed.webSearch === call.webSearch &&
      !(isCut && into.finish?.finishReason === 'Length') &&
      into.finish?.isPaused !== true;
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
export const callWithFallbacks = async (
  run: ActiveRun,
  ports: ModelPorts,
  first: ModelCall,
  messageId: string,
): Promise<{ target: CompiledTarget; answer: ModelAnswer }> => {
  const targets: readonly CompiledTarget[] = [run.plan.agent.model, ...run.plan.agent.model.fallbacks];
  const errors: ModelCallError[] = [];
  const { guards } = ports;
  const isLive = run.tellsParts && (guards === null || !guards.output || !guards.buffersStreams);
  for (const [index, target] of targets.entries()) {
    const answer: ModelAnswer = {
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
      await callTarget(run, ports, target, call, messageId, answer, index + 1);
      return { target, answer };
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
