import type { ModelJson } from './model-provider.ts';

export type JsonObject = Readonly<Record<string, ModelJson | undefined>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const mergeInto = (target: Record<string, ModelJson | undefined>, patch: JsonObject): void => {
  for (const [name, value] of Object.entries(patch)) {
    const present = Object.hasOwn(target, name) ? target[name] : undefined;
    // `__proto__` as a setting's name must become a member, not a prototype; no API has such a member, so it is dropped.
    if (value === undefined || name === '__proto__') continue;
    if (isObject(present) && isObject(value)) {
      const merged = { ...present };
      mergeInto(merged, value);
      target[name] = merged as ModelJson;
    } else target[name] = value;
  }
};

/** The body with the patch's members added: objects are merged member by member, anything else is replaced. */
export const patchJson = (body: ModelJson, patch: JsonObject): ModelJson => {
  if (!isObject(body)) return body;
  const merged = { ...body };
  mergeInto(merged, patch);
  return merged as ModelJson;
};

// What Anthropic asks for at least.
const leastThinking = 1024;

/** Anthropic's library adds what the model may think to `max_tokens`: with a cap both share it, or nothing is thought. */
export const cappedJson = (body: ModelJson, cap: number): ModelJson => {
  if (!isObject(body) || typeof body['max_tokens'] !== 'number' || body['max_tokens'] <= cap) return body;
  const { thinking, ...rest } = body;
  const budget = isObject(thinking) ? thinking['budget_tokens'] : undefined;
  if (thinking === undefined || typeof budget !== 'number' || budget < cap)
    return { ...body, max_tokens: cap } as ModelJson;
  const share = Math.max(leastThinking, Math.floor(cap / 2));
  return {
    ...rest,
    max_tokens: cap,
    ...(share < cap && { thinking: { ...(thinking as JsonObject), budget_tokens: share } }),
  } as ModelJson;
};
