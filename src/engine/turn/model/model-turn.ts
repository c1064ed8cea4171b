import { parsedArguments } from '../../../core/documents/json-depth.ts';
import type { ModelCall, ModelFinish, ModelPrompt, ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { ContentPart, ProviderMetadata } from '../../context/index.ts';
import type { ModelPorts } from '../turn-ports.ts';
import { addCallUsage, announceUsage } from './call-usage.ts';
import { splitHostedCalls } from './hosted-call.ts';
import { guardedMessage, type HeldPart } from './message-guard.ts';
import { callWithFallbacks } from './model-answer.ts';
import { meantCall, promptAsMade } from './withheld-tools.ts';

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
    prompt: promptAsMade(run.plan.agent, prompt),
    tools: run.plan.agent.modelTools,
    toolChoice: withTools ? (binding.toolChoice ?? 'auto') : 'none',
    temperature: binding.temperature,
    topP: binding.topP,
    ...(binding.sampling === undefined ? {} : { sampling: binding.sampling }),
    maxOutputTokens: binding.maxOutputTokens,
    reasoningEffort: binding.reasoningEffort,
    responseFormat: binding.responseFormat,
    settings: binding.settings,
    ...(run.plan.agent.webSearch ? { webSearch: webSearchOf(run, ports) } : {}),
    ...(binding.vectors === undefined ? {} : { vectors: binding.vectors }),
    parallelToolCalls: binding.allowConcurrentToolCalls,
    signal: run.signal,
    callNumber: run.modelCalls,
    requestId: run.plan.requestId,
  };
};

/** What was never held, because no guard looks at it. */
const asContent = (part: HeldPart): ContentPart[] =>
  part.type === 'hosted-call' || part.type === 'hosted-result' ? [] : [part];

/** What the history keeps of the answer. */
const contentsOf = ({ text, contents, toolCalls, keptInputs, finish }: Omit<ModelTurn, 'messageId'>): ContentPart[] => {
  const { complete: parts, open } = splitHostedCalls(contents);
  if (text !== '') parts.push({ type: 'Text', text });
  // Of an answer that continues, they come last, as they were made. In any other answer they have no effect.
  if (finish.isPaused === true || toolCalls.length > 0) parts.push(...open);
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
  run.partialMessageId = messageId;
  const call = callFor(run, ports, prompt, withTools);
  run.callRecord?.sent(run.modelCalls, run.plan.agent.model.provider.name, call);
  const { target, answer } = await callWithFallbacks(run, ports, call, messageId);
  const { finish, isLive } = answer;
  if (finish === null) throw new Error('A model provider ended a stream without a finish part.');
  run.target = target;
  run.isFromCache = answer.fromCache;
  // A hit has neither usage nor cost, and its null cost must not make the cost of the other calls unknown.
  if (!answer.fromCache) addCallUsage(run, ports, target, finish);
  // A call after the last allowed round may still name tools; they are not executed and not kept.
  const toolCalls = withTools ? answer.toolCalls.map((made) => meantCall(run.plan.agent, made)) : [];
  run.callRecord?.answered(toolCalls.map((call) => call.toolCallId));
  const finishReason = toolCalls.length > 0 ? 'ToolCalls' : withTools || isRepair ? finish.finishReason : 'Iterations';
  const message =
    ports.guards === null
      ? { text: answer.text, toolCalls, keptInputs: [], contents: answer.contents.flatMap(asContent) }
      : await guardedMessage(run, ports, ports.guards, {
          ...answer,
          messageId,
          toolCalls,
          finishReason,
          provider: target.provider.name,
          isHeld: run.tellsParts && !isLive,
        });
  // The cache has answers that no guard has changed: what a guard replaced is kept nowhere.
  if (!('isUnchanged' in message) || message.isUnchanged) answer.keep();
  run.log.append('message.completed', {
    messageId,
    text: message.text,
    finishReason,
    ...(answer.fromCache ? { fromCache: true } : {}),
    ...(finish.isPaused === true ? { paused: true } : {}),
  });
  announceUsage(run, ports);
  run.partialText = '';
  return { ...message, messageId, contents: contentsOf({ ...message, finish }), finish };
};
