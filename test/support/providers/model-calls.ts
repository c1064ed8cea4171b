import assert from 'node:assert/strict';
import {
  type ModelCall,
  ModelCallError,
  type ModelErrorType,
  type ModelPart,
  type ModelProvider,
  type ModelTool,
} from '../../../src/providers/models/index.ts';

export const weatherTool: ModelTool = {
  name: 'weather_get',
  description: 'The weather at a place',
  inputSchema: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
};

/** A call with every optional field off; a test gives what it is about. */
export const modelCall = (given: Partial<ModelCall> = {}): ModelCall => ({
  model: 'test-model',
  prompt: [
    { role: 'system', content: 'Answer briefly.' },
    { role: 'user', content: [{ type: 'text', text: 'How is the weather?' }] },
  ],
  tools: [],
  toolChoice: 'auto',
  temperature: null,
  topP: null,
  maxOutputTokens: null,
  reasoningEffort: null,
  responseFormat: null,
  settings: {},
  parallelToolCalls: true,
  signal: new AbortController().signal,
  callNumber: 1,
  requestId: 'req-1',
  ...given,
});

export const collect = async (parts: AsyncIterable<ModelPart>): Promise<ModelPart[]> => {
  const collected: ModelPart[] = [];
  for await (const part of parts) collected.push(part);
  return collected;
};

export const textOf = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');

export const reasoningOf = (parts: readonly ModelPart[]): string =>
  parts.map((part) => (part.type === 'reasoning-delta' ? part.text : '')).join('');

export const toolCallsOf = (parts: readonly ModelPart[]): { id: string; name: string; input: unknown }[] =>
  parts
    .filter((part) => part.type === 'tool-call')
    .map((part) => ({ id: part.toolCallId, name: part.toolName, input: JSON.parse(part.input) }));

export const finishOf = (parts: readonly ModelPart[]): Extract<ModelPart, { type: 'finish' }> => {
  const last = parts.at(-1);
  assert.equal(last?.type, 'finish');
  assert.equal(parts.filter((part) => part.type === 'finish').length, 1);
  return last;
};

/** The failure of a call that must fail, with what came before it. */
export const failureOf = async (
  parts: AsyncIterable<ModelPart> | Promise<readonly ModelPart[]>,
): Promise<{
  error: ModelCallError;
  before: ModelPart[];
}> => {
  const before: ModelPart[] = [];
  try {
    if (parts instanceof Promise) before.push(...(await parts));
    else {
      for await (const part of parts) before.push(part);
    }
  } catch (error) {
    assert.ok(
      error instanceof ModelCallError,
      `not translated: ${error instanceof Error ? error.stack : String(error)}`,
    );
    return { error, before };
  }
  return assert.fail(`the call succeeded with ${JSON.stringify(before)}`);
};

export interface Mode {
  readonly name: string;
  readonly run: (provider: ModelProvider, call: ModelCall) => Promise<readonly ModelPart[]>;
}

/** Both ways to make a call, which must agree. */
export const modes: readonly Mode[] = [
  { name: 'streamed', run: (provider, call) => collect(provider.stream(call)) },
  { name: 'at once', run: (provider, call) => provider.generate(call) },
];

export const assertFailure = (
  error: ModelCallError,
  type: ModelErrorType,
  message: string,
  mayFallBack: boolean,
): void => {
  assert.equal(error.type, type);
  assert.equal(error.message, message);
  assert.equal(error.mayFallBack, mayFallBack);
};
