import { setTimeout as sleep } from 'node:timers/promises';
import { canceled } from '../call-failure.ts';
import { ModelCallError } from '../model-error.ts';
import type { ModelCall, ModelPart, ModelPrompt, ModelProvider, ModelToolCall, ModelUsage } from '../model-provider.ts';
import type { ScriptedSettings } from '../model-settings.ts';
import { unreportedUsage } from '../model-usage.ts';
import type { Script, ScriptFault, ScriptReply } from './script.ts';
import { ScriptError } from './script-error.ts';
import { loadScript } from './script-loader.ts';
import { matchRule } from './script-match.ts';
import { fillJson, fillText, type TemplateValues } from './script-template.ts';

/** The usual rule of thumb for English; a real tokenizer would cost more than the answer. */
const charactersPerToken = 4;

const characters = (prompt: ModelPrompt): number => {
  let total = 0;
  for (const message of prompt) {
    if (typeof message.content === 'string') {
      total += message.content.length;
      continue;
    }
    for (const part of message.content) {
      if (part.type === 'text' || part.type === 'reasoning') total += part.text.length;
      else if (part.type === 'tool-call') total += JSON.stringify(part.input).length;
      else if (part.type === 'tool-result') total += JSON.stringify(part.output).length;
    }
  }
  return total;
};

const estimatedUsage = (prompt: ModelPrompt, answered: number): ModelUsage => {
  const inputTokens = Math.ceil(characters(prompt) / charactersPerToken);
  const outputTokens = Math.ceil(answered / charactersPerToken);
  return { ...unreportedUsage, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
};

// Cut by code points, so that no chunk ends inside a character.
const chunksOf = (text: string, size: number | null): string[] => {
  if (text === '') return [];
  if (size === null) return [text];
  const points = Array.from(text);
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) =>
    points.slice(index * size, (index + 1) * size).join(''),
  );
};

const failure = (provider: string, fault: ScriptFault): ModelCallError => {
  const status = fault.httpStatus === null ? '' : ` and HTTP ${fault.httpStatus}`;
  return new ModelCallError(fault.type, `Provider "${provider}" failed as scripted with ${fault.type}${status}.`, {
    provider,
    httpStatus: fault.httpStatus ?? undefined,
    retryAfterMs: fault.retryAfterMs ?? undefined,
  });
};

const toolCalls = (reply: ScriptReply, values: TemplateValues, callNumber: number): ModelToolCall[] =>
  reply.toolCalls.map((call, index) => {
    const filled = fillJson(call.arguments, values);
    return {
      type: 'tool-call',
      toolCallId: `call_${callNumber}_${index}`,
      toolName: call.name,
      input: typeof filled === 'string' ? filled : JSON.stringify(filled),
    };
  });

const wait = async (ms: number | 'until-canceled', provider: string, { signal, wire }: ModelCall): Promise<void> => {
  if (signal.aborted) throw canceled(provider);
  wire?.enter();
  if (ms === 'until-canceled')
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  else if (ms > 0) await sleep(ms, undefined, { signal }).catch(() => undefined);
  wire?.leave();
  if (signal.aborted) throw canceled(provider);
};

const answer = async function* (
  provider: string,
  script: Script,
  call: ModelCall,
  paced: boolean,
): AsyncGenerator<ModelPart, void, undefined> {
  await wait(0, provider, call);
  const match = matchRule(script, call);
  if (match === null)
    throw new ModelCallError('provider_error', `Provider "${provider}" has no rule for this call in its script.`, {
      provider,
    });
  const { reply, values } = match;
  const text = fillText(reply.text, values);
  const chunks = chunksOf(text, paced ? reply.chunkSize : null);
  for (const [index, chunk] of chunks.entries()) {
    if (index > 0) await wait(reply.delayMs, provider, call);
    yield { type: 'text-delta', text: chunk };
  }
  if (reply.stall !== null) await wait(reply.stall, provider, call);
  if (reply.error !== null) throw failure(provider, reply.error);
  const calls = toolCalls(reply, values, call.callNumber);
  yield* calls;
  const answered = calls.reduce((sum, part) => sum + part.toolName.length + part.input.length, text.length);
  yield {
    type: 'finish',
    finishReason: calls.length > 0 ? 'ToolCalls' : 'Stop',
    usage: reply.usage === 'estimated' ? estimatedUsage(call.prompt, answered) : reply.usage,
    responseModel: call.model,
  };
};

const collect = async (parts: AsyncIterable<ModelPart>): Promise<ModelPart[]> => {
  const collected: ModelPart[] = [];
  for await (const part of parts) collected.push(part);
  return collected;
};

/** A provider that answers from a script and calls nobody: the same input always gives the same output. */
export const scriptedProvider = (name: string, settings: ScriptedSettings): ModelProvider => {
  const { File: file } = settings;
  if (!file)
    throw new ScriptError([{ file: `Providers:Scripted:${name}:File`, line: null, field: '', message: 'is missing' }]);
  const script = loadScript(file);
  return {
    name,
    kind: 'scripted',
    displayName: null,
    defaultModel: null,
    catalog: [],
    stream: (call) => answer(name, script, call, true),
    generate: (call) => collect(answer(name, script, call, false)),
  };
};
