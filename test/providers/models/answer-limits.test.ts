import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createModelProviders, type ModelProvider } from '../../../src/providers/models/index.ts';
import { anthropicWire } from '../../support/providers/anthropic.wire.ts';
import {
  assertFailure,
  failureOf,
  modelCall,
  modes,
  textOf,
  weatherTool,
} from '../../support/providers/model-calls.ts';
import { startRawServer, writeForever } from '../../support/providers/raw-server.ts';
import type { SimulatedAnswer, SimulatedRequest } from '../../support/providers/scenario.ts';
import { openBench, type SurfaceCase, surfaceCases } from '../../support/providers/surface-cases.ts';

const kb = 1024;
const hour = 3_600_000;
const answerLimits = { maxBytes: 64 * kb, maxStreamBytes: 1024 * kb, stallMs: hour };

const open = async (
  surface: SurfaceCase,
  url: string,
  limits: Partial<typeof answerLimits> = {},
  timeoutMs: number | null = null,
): Promise<{ provider: ModelProvider; [Symbol.asyncDispose](): Promise<void> }> => {
  const providers = createModelProviders(surface.settings(url, timeoutMs), {
    log: () => undefined,
    answerLimits: { ...answerLimits, ...limits },
  });
  const provider = providers.get(surface.provider);
  assert.ok(provider);
  return { provider, [Symbol.asyncDispose]: () => providers.close() };
};

const tooLarge = (provider: string): string => `Provider "${provider}" sent more than an answer may hold.`;
const late = (provider: string): string => `Provider "${provider}" did not answer in time.`;
const types = ['text/event-stream', 'application/json', 'application/octet-stream'];

/** Whether a text of this depth was parsed while the work was done. */
const parsesDeep = async (work: () => Promise<unknown>): Promise<boolean> => {
  const { parse } = JSON;
  let isDeep = false;
  JSON.parse = (text, reviver) => {
    isDeep ||= String(text).includes('['.repeat(600));
    return parse(text, reviver) as unknown;
  };
  try {
    await work();
  } finally {
    JSON.parse = parse;
  }
  return isDeep;
};

for (const surface of surfaceCases)
  describe(`limits of an answer: ${surface.provider}`, { timeout: 60_000 }, () => {
    for (const { name, run } of modes)
      for (const type of types)
        test(`an answer of type ${type} that never ends, asked for ${name}, is cut at its limit`, async () => {
          await using server = await startRawServer((response) => {
            response.writeHead(200, { 'content-type': type });
            writeForever(response, `: ${'x'.repeat(8 * kb)}\n\n`);
          });
          await using opened = await open(surface, server.url);
          const { error } = await failureOf(run(opened.provider, modelCall({ model: surface.model })));
          assertFailure(error, 'provider_error', tooLarge(surface.provider), false);
        });

    for (const { name, run } of modes)
      for (const [what, status, text] of [
        ['an event', 200, `data: {"choices":${'['.repeat(20_000)}\n\n`],
        ['a document', 200, `{"choices":${'['.repeat(20_000)}`],
        ['a refusal', 400, `{"error":${'['.repeat(20_000)}`],
      ] as const)
        test(`${what} of brackets in the answer to a call ${name} is never parsed`, async () => {
          await using server = await startRawServer((response) => {
            response.writeHead(status, { 'content-type': 'application/json' }).end(text);
          });
          await using opened = await open(surface, server.url);
          let failure: Awaited<ReturnType<typeof failureOf>> | null = null;
          const isParsed = await parsesDeep(async () => {
            failure = await failureOf(run(opened.provider, modelCall({ model: surface.model })));
          });
          assert.equal(isParsed, false);
          const { error } = failure ?? assert.fail('it failed');
          assert.equal(
            (error as { httpStatus?: number }).httpStatus === 400,
            status === 400,
            'a refusal keeps its status',
          );
        });

    const chunks = Array.from({ length: 80 }, () => 'y'.repeat(kb));
    const contents: Readonly<Record<string, SimulatedAnswer>> = {
      text: { text: chunks },
      // Chat completions of these two stream none.
      ...(['openai', 'azure-openai'].includes(surface.provider)
        ? {}
        : { reasoning: { reasoning: chunks, text: ['done'] } }),
      'arguments of a tool': {
        toolCalls: [{ id: 'call_1', name: 'weather_get', arguments: JSON.stringify({ city: chunks.join('') }) }],
      },
    };
    for (const [what, answer] of Object.entries(contents))
      test(`a streamed answer holds no more ${what} than its limit`, async () => {
        await using bench = await openBench({ settings: (url) => surface.settings(url, null), answerLimits });
        bench.simulator.enqueue({ answer });
        const call = modelCall({ model: surface.model, tools: [weatherTool] });
        const { error, before } = await failureOf(bench.provider(surface.provider).stream(call));
        assertFailure(error, 'provider_error', tooLarge(surface.provider), false);
        assert.ok(textOf(before).length <= answerLimits.maxBytes);
      });

    test('an answer within the limits is whole, however many events carry it', async () => {
      await using bench = await openBench({ settings: (url) => surface.settings(url, null), answerLimits });
      const text = Array.from({ length: 2_000 }, (_, index) => `w${index} `);
      bench.simulator.enqueue({ answer: { text } });
      const parts = await modes[0]?.run(bench.provider(surface.provider), modelCall({ model: surface.model }));
      assert.equal(textOf(parts ?? []), text.join(''));
    });

    for (const timeoutMs of [null, hour])
      test(`a stream that goes on without adding anything ends after the stall timeout (Timeout ${timeoutMs})`, async () => {
        await using server = await startRawServer((response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          writeForever(response, ': still here\n\n', 20);
        });
        await using opened = await open(surface, server.url, { stallMs: 300 }, timeoutMs);
        const { error } = await failureOf(opened.provider.stream(modelCall({ model: surface.model })));
        assertFailure(error, 'provider_timeout', late(surface.provider), true);
      });

    test('a whole answer that drips ends after the stall timeout', async () => {
      await using server = await startRawServer((response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        writeForever(response, ' ', 20);
      });
      await using opened = await open(surface, server.url, { stallMs: 300 });
      const { error } = await failureOf(opened.provider.generate(modelCall({ model: surface.model })));
      assertFailure(error, 'provider_timeout', late(surface.provider), true);
    });
  });

test('empty chunks of a chat are no progress', { timeout: 60_000 }, async () => {
  const surface = surfaceCases.find(({ provider }) => provider === 'local');
  assert.ok(surface);
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    writeForever(response, `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: '' } }] })}\n\n`, 20);
  });
  await using opened = await open(surface, server.url, { stallMs: 300 }, hour);
  const { error } = await failureOf(opened.provider.stream(modelCall()));
  assertFailure(error, 'provider_timeout', late('local'), true);
});

test('tool calls without arguments come to an end, too', { timeout: 60_000 }, async () => {
  const surface = surfaceCases.find(({ provider }) => provider === 'local');
  assert.ok(surface);
  let index = 0;
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const chunk = () => {
      index += 1;
      return `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: [{ index, function: { name: 'a' } }] } }] })}\n\n`;
    };
    const step = (): void => {
      if (response.destroyed) return;
      response.write(Array.from({ length: 50 }, chunk).join(''));
      setImmediate(step);
    };
    step();
  });
  await using opened = await open(surface, server.url, { maxStreamBytes: 64 * 1024 * kb });
  const { error } = await failureOf(opened.provider.stream(modelCall()));
  assertFailure(error, 'provider_error', tooLarge('local'), false);
  assert.ok(index < 2_000, `${index} calls were read`);
});

test('a burst is decoded in slices, between which others have their turn', { timeout: 60_000 }, async () => {
  const surface = surfaceCases.find(({ provider }) => provider === 'anthropic');
  assert.ok(surface);
  const words = Array.from({ length: 8_000 }, (_, index) => `w${index} `);
  const frames = anthropicWire.frames({ text: words }, { model: 'm', body: {} } as SimulatedRequest).join('');
  await using server = await startRawServer((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(frames);
  });
  await using opened = await open(surface, server.url, { maxStreamBytes: 64 * 1024 * kb, maxBytes: 1024 * kb });
  let inTurn = 0;
  let most = 0;
  let text = '';
  let isDone = false;
  const turn = (): void => {
    inTurn = 0;
    if (!isDone) setImmediate(turn);
  };
  turn();
  for await (const part of opened.provider.stream(modelCall())) {
    inTurn += 1;
    most = Math.max(most, inTurn);
    if (part.type === 'text-delta') text += part.text;
  }
  isDone = true;
  assert.equal(text, words.join(''));
  // A frame has more than 100 bytes, and a slice 16 KB.
  assert.ok(most < 400, `${most} parts in one turn of the event loop`);
});
