import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClient } from '../../src/client/client.ts';
import { followEvents, followStarted } from '../../src/client/follow-events.ts';
import { httpTransport } from '../../src/client/http-transport.ts';
import { AcpError } from '../../src/contract/errors.ts';
import { startCuttingProxy } from './cutting-proxy.ts';
import { agent, collect, startService } from './service.ts';

const isSequence = (ids: readonly (number | undefined)[], from: number): void =>
  assert.deepEqual(
    ids,
    ids.map((_id, index) => index + from),
  );

describe('following a run', () => {
  test('misses and repeats nothing when the connection is cut again and again', async (t) => {
    const { http, url } = await startService(t);
    await http.agents.create({ body: agent });
    // Head, half a frame, several frames, no connection at all, then the rest.
    const proxy = await startCuttingProxy(url, [700, 400, 0, 1500, 900]);
    t.after(() => proxy.close());
    const transport = httpTransport({ url: proxy.url });
    t.after(() => transport.close());
    const client = createClient(transport);

    const started = await client.runs.start({ params: { name: 'hello' }, body: { message: 'count' } });
    assert.ok(started.frames !== undefined);
    const runId = started.headers['x-run-id'] ?? '';
    const retries: string[] = [];
    const onRetry = (error: AcpError): void => void retries.push(error.code);
    const frames = await collect(followStarted(client, runId, started, { onRetry }));
    isSequence(
      frames.map(({ id }) => id),
      0,
    );
    assert.equal(frames.at(-1)?.event, 'run.completed');
    assert.ok(retries.length >= 3, `${retries.length} retries`);

    const whole = await collect(followEvents(http, runId));
    assert.deepEqual(frames, whole);
  });

  test('goes on after a known sequence, and ends at once behind the last', async (t) => {
    for (const [, client] of (await startService(t)).clients) {
      const name = `agent-${Math.floor(performance.now() * 1000)}`;
      await client.agents.create({ body: { ...agent, name } });
      const started = await client.runs.start({ params: { name }, body: { message: 'count' } });
      assert.ok(started.frames !== undefined);
      const runId = started.headers['x-run-id'] ?? '';
      const all = await collect(started.frames);
      const rest = await collect(followEvents(client, runId, { from: 4 }));
      assert.deepEqual(rest, all.slice(5));
      assert.deepEqual(await collect(followEvents(client, runId, { from: all.length - 1 })), []);
    }
  });

  test('tells at once what waiting does not change', async (t) => {
    const { http } = await startService(t);
    const unknown = followEvents(http, '01900000-0000-7000-8000-000000000000');
    await assert.rejects(collect(unknown), (error) => error instanceof AcpError && error.code === 'run-not-found');
    const transport = httpTransport({ url: 'http://127.0.0.1:1' });
    const nowhere = followEvents(createClient(transport), '01900000-0000-7000-8000-000000000000');
    await assert.rejects(collect(nowhere), (error) => error instanceof AcpError && error.code === 'cannot-connect');
    await transport.close();
  });

  test('gives up once nothing came for longer than its patience', async (t) => {
    const { http, url } = await startService(t);
    await http.agents.create({ body: agent });
    const { headers } = await http.runs.start({ params: { name: 'hello' }, body: { message: 'stall' } });
    const runId = headers['x-run-id'] ?? '';
    const proxy = await startCuttingProxy(url, [700, ...Array.from({ length: 50 }, () => 0)]);
    t.after(() => proxy.close());
    const transport = httpTransport({ url: proxy.url });
    t.after(() => transport.close());
    const following = collect(followEvents(createClient(transport), runId, { patienceMs: 600 }));
    await assert.rejects(following, (error) => error instanceof AcpError && error.code === 'cannot-connect');
    await http.runs.cancel({ params: { runId } });
  });

  test('ends with the reason of its signal while it waits for events', async (t) => {
    for (const [, client] of (await startService(t)).clients) {
      const name = `agent-${Math.floor(performance.now() * 1000)}`;
      await client.agents.create({ body: { ...agent, name } });
      const reply = await client.runs.start({ params: { name }, body: { message: 'stall' } });
      assert.ok(reply.frames !== undefined);
      const runId = reply.headers['x-run-id'] ?? '';
      const leave = new AbortController();
      const following = (async () => {
        for await (const frame of followStarted(client, runId, reply, { signal: leave.signal })) {
          assert.equal(frame.event, 'run.started');
          break;
        }
        for await (const frame of followEvents(client, runId, { signal: leave.signal }))
          if (frame.event === 'run.started') leave.abort(new Error('enough'));
      })();
      await assert.rejects(following, { message: 'enough' });
      await client.runs.cancel({ params: { runId } });
    }
  });
});
