import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import type { ModelPart } from '../../../src/providers/models/index.ts';
import {
  assertFailure,
  collect,
  failureOf,
  modelCall,
  modes,
  textOf,
  weatherTool,
} from '../../support/providers/model-calls.ts';
import type { SimulatedFault, VendorFault } from '../../support/providers/scenario.ts';
import { type LoggedError, openBench, openSurface, surfaceCases } from '../../support/providers/surface-cases.ts';

interface StatusCase {
  readonly fault: Extract<SimulatedFault, { kind: 'status' }>;
  readonly type: Parameters<typeof assertFailure>[1];
  readonly message: (provider: string) => string;
  readonly mayFallBack: boolean;
}

const status = (fault: Omit<Extract<SimulatedFault, { kind: 'status' }>, 'kind'>) =>
  ({ kind: 'status', ...fault }) as const;

const statusCases: readonly StatusCase[] = [
  {
    fault: status({ status: 400, vendor: 'bad-request' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 400.`,
    mayFallBack: false,
  },
  {
    fault: status({ status: 401, vendor: 'bad-key' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 401.`,
    mayFallBack: false,
  },
  {
    fault: status({ status: 403, vendor: 'bad-key' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 403.`,
    mayFallBack: false,
  },
  {
    fault: status({ status: 429, vendor: 'rate-limit', headers: { 'retry-after': '7' } }),
    type: 'provider_rate_limited',
    message: (provider) => `Provider "${provider}" answered with HTTP 429.`,
    mayFallBack: true,
  },
  {
    fault: status({ status: 500, vendor: 'server' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 500.`,
    mayFallBack: true,
  },
  {
    fault: status({ status: 503, body: '<html><body>Service unavailable</body></html>' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 503.`,
    mayFallBack: true,
  },
  {
    fault: status({ status: 502, body: '' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 502.`,
    mayFallBack: true,
  },
  {
    fault: status({ status: 307, headers: { location: 'http://127.0.0.1:1/' }, body: '' }),
    type: 'provider_error',
    message: (provider) => `Provider "${provider}" answered with HTTP 307.`,
    mayFallBack: false,
  },
  {
    fault: status({ status: 400, vendor: 'context' }),
    type: 'context_overflow',
    message: (provider) => `Provider "${provider}" refused the prompt as too long.`,
    mayFallBack: false,
  },
];

const manyWords = Array.from({ length: 12 }, (_, index) => (index === 0 ? 'One' : ` and ${index}`));

const loggedText = (log: readonly LoggedError[]): string => log.map((entry) => String(entry.error)).join('\n');

for (const surface of surfaceCases) {
  describe(`errors of a model call: ${surface.provider}`, () => {
    for (const mode of modes) {
      for (const { fault, type, message, mayFallBack } of statusCases) {
        test(`HTTP ${fault.status} ${fault.vendor ?? 'without a document'} is ${type} ${mode.name}`, async () => {
          await using bench = await openSurface(surface);
          bench.simulator.enqueue({ fault });

          const call = modelCall({ model: surface.model });
          const { error, before } = await failureOf(mode.run(bench.provider(surface.provider), call));

          assertFailure(error, type, message(surface.provider), mayFallBack);
          assert.equal(error.httpStatus, fault.status);
          assert.equal(error.provider, surface.provider);
          assert.equal(error.retryAfterMs, fault.status === 429 ? 7000 : null);
          assert.deepEqual(before, []);
          assert.equal(bench.simulator.requests.length, 1, 'a redirect is not followed and nothing is repeated');
          // MODEL-14: the provider's own text is in the log and nowhere else.
          assert.equal(bench.log.length, 1);
          assert.equal(bench.log[0]?.requestId, 'req-1');
        });
      }

      test(`no answer in time is provider_timeout ${mode.name}`, async () => {
        await using bench = await openSurface(surface, 250);
        const call = modelCall({ model: surface.model });
        // The first call loads the vendor's library, which may take longer than the limit; how it ends is not the point.
        await mode.run(bench.provider(surface.provider), call).catch(() => undefined);
        bench.simulator.enqueue({ answer: { text: ['Hi'] }, fault: { kind: 'stall', after: 0 } });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));

        assertFailure(error, 'provider_timeout', `Provider "${surface.provider}" did not answer in time.`, true);
        assert.equal(error.errorClass, 'Timeout');
        await bench.simulator.lastRequest().aborted;
      });

      test(`cancelling closes the connection to the provider ${mode.name}`, async () => {
        await using bench = await openBench({
          settings: (url) => surface.settings(url, null),
          respond: () => {
            queueMicrotask(() => controller.abort());
            return { answer: { text: ['Hi'] }, fault: { kind: 'stall', after: 0 } };
          },
        });
        const controller = new AbortController();

        const call = modelCall({ model: surface.model, signal: controller.signal });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));

        assertFailure(error, 'canceled', `The call of provider "${surface.provider}" was canceled.`, false);
        await bench.simulator.lastRequest().aborted;
        assert.equal(bench.log.length, 0);
      });

      test(`a call that is cancelled already sends nothing ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        const call = modelCall({ model: surface.model, signal: AbortSignal.abort() });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));
        assert.equal(error.type, 'canceled');
        assert.equal(bench.simulator.requests.length, 0);
      });

      test(`a refused connection is provider_unavailable ${mode.name}`, async () => {
        const closed = createServer().listen(0, '127.0.0.1');
        await once(closed, 'listening');
        const address = closed.address();
        const url = typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : '';
        closed.close();
        await once(closed, 'close');
        await using bench = await openBench({ settings: () => surface.settings(url, null) });

        const call = modelCall({ model: surface.model });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));

        assertFailure(error, 'provider_unavailable', `Provider "${surface.provider}" could not be reached.`, true);
        assert.equal(error.httpStatus, null);
      });

      test(`a connection that is cut is provider_unavailable ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['One', ' two', ' three'] }, fault: { kind: 'cut', after: 1 } });

        const call = modelCall({ model: surface.model });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));

        assert.equal(error.type, 'provider_unavailable');
        assert.equal(error.mayFallBack, true);
      });

      test(`an answer that is no JSON is provider_error ${mode.name}`, async () => {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { text: ['One', ' two'] }, fault: { kind: 'malformed', after: 1 } });

        const call = modelCall({ model: surface.model });
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));

        const message = `Provider "${surface.provider}" sent an answer that could not be read.`;
        assertFailure(error, 'provider_error', message, false);
        assert.equal(bench.log.length, 1);
      });
    }

    test('MODEL-12 the time between parts counts, not the time that the reader takes', async () => {
      await using bench = await openSurface(surface, 400);
      // The first call loads the library and opens the connection, which is not what is measured here.
      await bench.provider(surface.provider).generate(modelCall({ model: surface.model }));
      bench.simulator.enqueue({ answer: { text: manyWords }, fault: { kind: 'stall', after: 6 } });

      const before: ModelPart[] = [];
      const { error } = await failureOf(
        (async function* slowly() {
          for await (const part of bench.provider(surface.provider).stream(modelCall({ model: surface.model }))) {
            before.push(part);
            yield part;
          }
        })(),
      );

      assert.equal(error.type, 'provider_timeout');
      assert.ok(textOf(before).startsWith('One'));
    });

    test('parts that came before a cut are delivered', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({
        answer: { text: ['One', ' two', ' three', ' four', ' five'] },
        fault: { kind: 'cut', after: 7 },
      });
      const call = modelCall({ model: surface.model });
      const { error, before } = await failureOf(bench.provider(surface.provider).stream(call));
      assert.equal(error.type, 'provider_unavailable');
      assert.equal(error.httpStatus, null);
      assert.ok(before.every((part) => part.type !== 'finish'));
    });

    test('a stream that ends in good order before its finish is provider_unavailable', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ answer: { text: manyWords }, fault: { kind: 'end', after: 5 } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assertFailure(error, 'provider_unavailable', `Provider "${surface.provider}" broke off its answer.`, true);
    });

    test('a stream that is empty is provider_unavailable', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ fault: { kind: 'end', after: 0 } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assert.equal(error.type, 'provider_unavailable');
    });

    test('a stream that breaks off inside a tool call gives no half call', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({
        answer: {
          toolCalls: [{ id: 'call_a', name: 'weather_get', arguments: '{"city":"Sankt Pölten an der Traisen"}' }],
        },
        fault: { kind: 'end', after: surface.wire === 'gemini' ? 0 : 4 },
      });
      const call = modelCall({ model: surface.model, tools: [weatherTool] });
      const { error, before } = await failureOf(bench.provider(surface.provider).stream(call));
      assert.equal(error.type, 'provider_unavailable');
      assert.deepEqual(before, []);
    });

    const events: readonly (readonly [VendorFault, string, number, boolean])[] = [
      ['server', 'provider_error', 500, true],
      ['rate-limit', 'provider_rate_limited', 429, true],
      ['context', 'context_overflow', 400, false],
    ];
    for (const [vendor, type, httpStatus, mayFallBack] of events) {
      for (const after of [0, 6])
        test(`an error event "${vendor}" after ${after} frames is ${type}`, async () => {
          await using bench = await openSurface(surface);
          bench.simulator.enqueue({
            answer: { text: manyWords },
            fault: { kind: 'event', after, vendor },
          });
          const { error } = await failureOf(
            bench.provider(surface.provider).stream(modelCall({ model: surface.model })),
          );
          assert.equal(error.type, type);
          assert.equal(error.httpStatus, httpStatus);
          assert.equal(error.mayFallBack, mayFallBack);
        });
    }

    test('an overload reported inside the stream may fall back', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ fault: { kind: 'event', after: 0, vendor: 'overloaded' } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assert.equal(error.type, 'provider_error');
      assert.equal(error.mayFallBack, true);
      assert.ok((error.httpStatus ?? 0) >= 500);
    });

    test('a reader that goes away closes the connection to the provider', async () => {
      await using bench = await openSurface(surface);
      const text = Array.from({ length: 50 }, (_, index) => `word ${index} `);
      bench.simulator.enqueue({ answer: { text }, fault: { kind: 'stall', after: 20 } });
      for await (const part of bench.provider(surface.provider).stream(modelCall({ model: surface.model }))) {
        assert.equal(part.type, 'text-delta');
        break;
      }
      await bench.simulator.lastRequest().aborted;
      assert.equal(bench.log.length, 0);
    });

    test('cancelling in the middle of the answer ends the stream', async () => {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ answer: { text: manyWords }, fault: { kind: 'stall', after: 6 } });
      const controller = new AbortController();
      const call = modelCall({ model: surface.model, signal: controller.signal });
      const { error, before } = await failureOf(
        (async function* abortAtFirst() {
          for await (const part of bench.provider(surface.provider).stream(call)) {
            controller.abort();
            yield part;
          }
        })(),
      );
      assert.equal(error.type, 'canceled');
      assert.equal(before.length, 1);
      await bench.simulator.lastRequest().aborted;
    });

    test('MODEL-9 a provider without a key fails before anything is sent', async () => {
      await using bench = await openBench({ settings: (url) => withoutKey(surface.settings(url, null)) });
      const call = modelCall({ model: surface.model });
      if (surface.credentialHeader === null) {
        await collect(bench.provider(surface.provider).stream(call));
        assert.equal(bench.simulator.lastRequest().headers['authorization'], undefined);
        return;
      }
      for (const mode of modes) {
        const { error } = await failureOf(mode.run(bench.provider(surface.provider), call));
        const message = `Provider "${surface.provider}" has no usable credential.`;
        assertFailure(error, 'provider_credential_unresolved', message, false);
      }
      assert.equal(bench.simulator.requests.length, 0);
    });

    test('MODEL-14 the key is not in the log when a provider quotes it', async () => {
      await using bench = await openSurface(surface);
      const body = JSON.stringify({
        error: { message: 'Bad key sk-test-0123456789 for this project', type: 'x', code: 'y', status: 'z' },
      });
      bench.simulator.enqueue({ fault: { kind: 'status', status: 401, body } });
      await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      const logged = loggedText(bench.log);
      assert.match(logged, /for this project/);
      assert.equal(logged.includes('sk-test-0123456789'), surface.credentialHeader === null);
    });
  });
}

const withoutKey = <T extends object>(settings: T): T =>
  JSON.parse(JSON.stringify(settings), (name, value) => (name === 'ApiKey' ? undefined : value)) as T;

describe('refused by the provider’s filter', () => {
  test('a filter that leaves nothing is content_filtered', async () => {
    for (const surface of surfaceCases) {
      for (const mode of modes) {
        await using bench = await openSurface(surface);
        bench.simulator.enqueue({ answer: { finish: 'filter' } });
        const { error } = await failureOf(
          mode.run(bench.provider(surface.provider), modelCall({ model: surface.model })),
        );
        assertFailure(error, 'content_filtered', `Provider "${surface.provider}" refused the content.`, false);
      }
    }
  });

  test('a prompt that is refused with a filter code is content_filtered', async () => {
    for (const surface of surfaceCases.filter(({ wire }) => wire !== 'anthropic')) {
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'filter' } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assert.equal(error.type, 'content_filtered');
      assert.equal(error.httpStatus, 400);
    }
  });

  test('a prompt that Gemini blocks has no candidate', async () => {
    const google = surfaceCases.filter(({ wire }) => wire === 'gemini');
    for (const surface of google) {
      await using bench = await openSurface(surface);
      const frame =
        'data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":9,"totalTokenCount":9}}\n\n';
      bench.simulator.enqueue({ fault: { kind: 'malformed', after: 0, frame } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assert.equal(error.type, 'content_filtered');
    }
  });
});

describe('how long a provider asks to wait', () => {
  const cases: readonly (readonly [Record<string, string>, (ms: number | null) => boolean])[] = [
    [{ 'retry-after': '12' }, (ms) => ms === 12_000],
    [{ 'retry-after': '0.5' }, (ms) => ms === 500],
    [{ 'retry-after-ms': '250', 'retry-after': '1' }, (ms) => ms === 250],
    [{ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }, (ms) => ms !== null && ms > 3_000_000],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, (ms) => ms === 0],
    [{ 'retry-after': 'soon' }, (ms) => ms === null],
    [{}, (ms) => ms === null],
  ];
  for (const [headers, holds] of cases)
    test(`MODEL-15 ${JSON.stringify(Object.keys(headers))} is understood`, async () => {
      const surface = surfaceCases[0];
      assert.ok(surface !== undefined);
      await using bench = await openSurface(surface);
      bench.simulator.enqueue({ fault: { kind: 'status', status: 429, vendor: 'rate-limit', headers } });
      const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
      assert.equal(error.type, 'provider_rate_limited');
      assert.ok(holds(error.retryAfterMs), `got ${error.retryAfterMs}`);
    });

  test('MODEL-15 Gemini says it in the error document', async () => {
    const surface = surfaceCases.find(({ wire }) => wire === 'gemini');
    assert.ok(surface !== undefined);
    await using bench = await openSurface(surface);
    bench.simulator.enqueue({ fault: { kind: 'status', status: 429, vendor: 'rate-limit' } });
    const { error } = await failureOf(bench.provider(surface.provider).stream(modelCall({ model: surface.model })));
    assert.equal(error.retryAfterMs, 17_000);
  });
});

describe('MODEL-13 retries inside one call', () => {
  const anthropic =
    (retries: number | null, timeoutMs: number | null = null) =>
    (url: string) => ({
      Anthropic: { ApiKey: 'k', Endpoint: url, MaxRetries: retries, Timeout: timeoutMs },
    });
  const overloaded = {
    fault: { kind: 'status', status: 529, vendor: 'overloaded', headers: { 'retry-after-ms': '1' } },
  } as const;
  const call = () => modelCall({ model: 'claude-sonnet-4-5' });

  for (const mode of modes)
    test(`two by default ${mode.name}`, async () => {
      await using bench = await openBench({ settings: anthropic(null) });
      bench.simulator.enqueue(overloaded, overloaded, { answer: { text: ['At last.'] } });
      assert.equal(textOf(await mode.run(bench.provider('anthropic'), call())), 'At last.');
      assert.equal(bench.simulator.requests.length, 3);
      assert.equal(bench.log.length, 0);
    });

  test('the last failure is the failure of the call', async () => {
    await using bench = await openBench({ settings: anthropic(1) });
    bench.simulator.enqueue(overloaded, { fault: { kind: 'status', status: 429, vendor: 'rate-limit' } }, {});
    const { error } = await failureOf(bench.provider('anthropic').stream(call()));
    assert.equal(error.type, 'provider_rate_limited');
    assert.equal(bench.simulator.requests.length, 2);
  });

  test('none for a refusal, and none when set to 0', async () => {
    await using bench = await openBench({ settings: anthropic(5) });
    bench.simulator.enqueue({ fault: { kind: 'status', status: 400, vendor: 'bad-request' } });
    assert.equal((await failureOf(bench.provider('anthropic').stream(call()))).error.httpStatus, 400);
    assert.equal(bench.simulator.requests.length, 1);

    await using none = await openBench({ settings: anthropic(0) });
    none.simulator.enqueue(overloaded);
    assert.equal((await failureOf(none.provider('anthropic').stream(call()))).error.httpStatus, 529);
    assert.equal(none.simulator.requests.length, 1);
  });

  test('none after the first part', async () => {
    await using bench = await openBench({ settings: anthropic(5) });
    bench.simulator.enqueue({
      answer: { text: ['One', ' two'] },
      fault: { kind: 'event', after: 4, vendor: 'overloaded' },
    });
    const { error, before } = await failureOf(bench.provider('anthropic').stream(call()));
    assert.equal(error.httpStatus, 529);
    assert.equal(textOf(before), 'One');
    assert.equal(bench.simulator.requests.length, 1);
  });

  test('the timeout covers them', async () => {
    await using bench = await openBench({ settings: anthropic(5, 1000) });
    bench.simulator.enqueue({ fault: { kind: 'status', status: 529, headers: { 'retry-after': '30' } } });
    const { error } = await failureOf(bench.provider('anthropic').stream(call()));
    assert.equal(error.type, 'provider_timeout');
    assert.equal(bench.simulator.requests.length, 1);
  });

  test('cancelling ends the wait', async () => {
    const controller = new AbortController();
    await using bench = await openBench({
      settings: anthropic(5),
      respond: () => {
        setImmediate(() => controller.abort());
        return { fault: { kind: 'status', status: 529, headers: { 'retry-after': '30' } } };
      },
    });
    const { error } = await failureOf(bench.provider('anthropic').stream({ ...call(), signal: controller.signal }));
    assert.equal(error.type, 'canceled');
  });
});
