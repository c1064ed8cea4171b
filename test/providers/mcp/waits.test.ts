import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createAgentResources } from '../../../src/features/mcp-servers/agent-resources.ts';
import { createProgram } from '../../../src/providers/mcp/stdio/program.ts';
import { followTask } from '../../../src/providers/mcp/tasks.ts';

// What waits here waits for the machine of somebody else.
const turnTimers = (t: TestContext): void => t.mock.timers.enable({ apis: ['setTimeout'] });

test('MCP-40 a task is asked for every half second at most and every half minute at least, whatever its server says', async (t) => {
  turnTimers(t);
  const intervals: readonly (readonly [number | null, number])[] = [
    [0, 500],
    [3_600_000, 30_000],
    [700, 700],
    [null, 1000],
  ];
  for (const [pollIntervalMs, waited] of intervals) {
    let polls = 0;
    const client = {
      async request() {
        polls += 1;
        return polls === 3 ? { status: 'completed', result: {} } : { status: 'working' };
      },
    };
    const options = { signal: new AbortController().signal, timeoutMs: 1000 };
    const ended = followTask(client as never, { taskId: 't', pollIntervalMs }, new Set(), options);
    for (const poll of [0, 1, 2]) {
      await nextTurn();
      t.mock.timers.tick(waited - 1);
      await nextTurn();
      assert.equal(polls, poll, `${pollIntervalMs}`);
      t.mock.timers.tick(1);
      await nextTurn();
      assert.equal(polls, poll + 1, `${pollIntervalMs}`);
    }
    assert.deepEqual(await ended, { kind: 'ended', result: {} });
  }
});

test('MCP-17 a program that does not start is tried again after a pause that doubles', async (t) => {
  turnTimers(t);
  const failed: object[] = [];
  const program = createProgram(
    { name: 'local', command: ['/nowhere/program'], environment: {}, workingDirectory: null },
    {
      log: { info: () => undefined, warn: (fields) => void failed.push(fields) },
      path: undefined,
      maxLineBytes: 1024,
    },
  );
  const tried = () => program.channel().catch(() => undefined);
  await tried();
  assert.equal(failed.length, 1);
  for (const pauseMs of [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    const before: number = failed.length;
    const attempt = tried();
    await nextTurn();
    t.mock.timers.tick(pauseMs - 1);
    await nextTurn();
    assert.equal(failed.length, before, `${pauseMs}`);
    t.mock.timers.tick(1);
    await attempt;
    assert.equal(failed.length, before + 1, `${pauseMs}`);
  }
  // Nobody waits for the pause of one that is stopped.
  const last = tried();
  await program.stop();
  await last;
  t.mock.timers.reset();
  assert.equal(failed.length, 10);
});

test('MCP-21 what a run begins with is waited for five seconds at most', async (t) => {
  const waits: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    waits.push(ms);
    return AbortSignal.abort();
  });
  for (const timeoutMs of [30_000, 1000]) {
    const resources = createAgentResources({
      catalog: { enabled: true, row: () => ({ id: 'a', enabled: 1 }) as never },
      content: {
        resources: async (_row, { signal }) => assert.ok(signal?.aborted === true) as never,
        readListed: async () => assert.fail('nothing is listed'),
      },
      ...{ timeoutMs, maxBytes: 10, maxTotalBytes: 10, log: { warn: () => undefined } },
    });
    const run = { tenantId: 'default', runId: 'r', requestId: 'q', names: ['docs:a://one'] };
    assert.deepEqual(await resources.read({ ...run, signal: new AbortController().signal }), []);
  }
  assert.deepEqual(waits, [5000, 1000]);
});
