import { createHash } from 'node:crypto';
import type { Json } from '../../../contract/schema.ts';
import { canonicalJson } from '../../../core/documents/canonical-json.ts';
import type { ModelCall, ModelPart, ModelPrompt } from '../../../providers/models/model-provider.ts';
import { unreportedUsage } from '../../../providers/models/model-usage.ts';
import type { ActiveRun } from '../../active-run.ts';
import type { CompiledTarget } from '../../compiled-agent.ts';
import { cutText } from '../../tools/index.ts';
import type { ResponseCache } from '../turn-ports.ts';

/** Small enough that a client renders a stored answer as it renders a live one. */
const replayedDeltaLength = 512;

const hasFile = (prompt: ModelPrompt): boolean =>
  prompt.some(({ content }) => typeof content !== 'string' && content.some((part) => part.type === 'file'));

/** Everything that is sent to the model and nothing about the run; what a later version adds to a call counts, too. */
const cacheKey = ({ provider }: CompiledTarget, call: ModelCall): string => {
  const { signal: _signal, callNumber: _number, requestId: _request, settings, prompt, tools, ...rest } = call;
  // Only settings are free of order: in prompts and schemas models read the order of members.
  const text = JSON.stringify([provider.name, provider.kind, canonicalJson(settings as Json), rest, tools, prompt]);
  return createHash('sha256').update(text).digest('base64url');
};

/** Adjacent deltas as one, and without what the call has cost: a hit costs nothing. */
const stored = (parts: readonly ModelPart[]): ModelPart[] => {
  const merged: ModelPart[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (part.type === 'text-delta' && last?.type === 'text-delta')
      merged[merged.length - 1] = { ...last, text: last.text + part.text };
    else if (part.type === 'reasoning-delta' && last?.type === 'reasoning-delta')
      merged[merged.length - 1] = { ...last, text: last.text + part.text };
    else merged.push(part.type === 'finish' ? { ...part, usage: unreportedUsage } : part);
  }
  return merged;
};

/** A filtered or empty answer may be another one next time; keeping it would repeat the failure. */
const isWorthKeeping = (parts: readonly ModelPart[]): boolean =>
  parts.some((part) => part.type === 'finish' && part.finishReason !== 'ContentFilter') &&
  parts.some((part) => part.type === 'tool-call' || (part.type === 'text-delta' && part.text !== ''));

/** Null: the agent has no cache, or the run must not use it (attachments, live replays, repairs). */
export const cacheableCall = (run: ActiveRun, cache: ResponseCache, target: CompiledTarget, call: ModelCall) => {
  const lifetimeMs = run.plan.agent.model.responseCacheMs;
  if (lifetimeMs === null || run.bypassesCache || hasFile(call.prompt)) return null;
  const { tenantId } = run.plan;
  const key = cacheKey(target, call);
  return {
    find: () => cache.find(tenantId, key, lifetimeMs),
    keep(parts: readonly ModelPart[]): void {
      if (isWorthKeeping(parts)) cache.keep(tenantId, key, lifetimeMs, stored(parts));
    },
  };
};

/** A stored answer in deltas, as a model would stream it. */
export const replayedParts = function* (parts: readonly ModelPart[]): Generator<ModelPart> {
  for (const part of parts) {
    if (part.type !== 'text-delta' && part.type !== 'reasoning-delta') {
      yield part;
      continue;
    }
    for (let rest = part.text; rest !== ''; ) {
      const text = cutText(rest, replayedDeltaLength);
      yield { ...part, text };
      rest = rest.slice(text.length);
    }
  }
};
