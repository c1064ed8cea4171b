import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { WaitClock } from '../../../src/engine/control/wait-clock.ts';
import { forEachDurableService, overHttp, type TestApp } from '../../support/app.ts';
import { refusal, runJson, runStream, start, tool } from './run-calls.ts';

const all = { Observability: { SuccessSampleRatio: 1 } };
const caller = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
const tracestate = 'congo=t61rcWkgMzE,rojo=00f067aa0ba902b7';
const traceparent = `00-${caller.traceId}-${caller.spanId}-01`;

const traceOf = async ({ client }: TestApp, runId: string) => (await client.runs.trace({ params: { runId } })).body;
const noTrace = async ({ client }: TestApp, runId: string) =>
  (await refusal(client.runs.trace({ params: { runId } }))).code;

const treeScript = [
  { when: { tool: 'add' }, reply: { text: 'Three.' } },
  { when: { tool: 'call_child' }, reply: { text: 'Done.' } },
  { when: { message: '/^ask/' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'sum' } }] } },
  { when: { message: '/^sum/' }, reply: { toolCalls: [{ name: 'add', arguments: { a: 1 } }] } },
  { when: { message: '/^fail/' }, reply: { error: 'provider_error' } },
  { reply: { text: 'Hi.' } },
];

const add = tool('add', async () => 3);
const agents = [
  { name: 'child', toolNames: ['add'] },
  { name: 'helper', callableAgentNames: ['child'] },
];

forEachDurableService('RUN-56, OBS-12, OBS-15, OBS-17 the trace of a tree, whichever member is asked', async (open) => {
  const app = await open({ service: all, script: treeScript, tools: [add], agents });
  const { runId } = await runStream(app.client, 'helper', 'ask');
  const [child] = (await app.client.runs.list({ query: { parentRunId: runId } })).body;
  const trace = await traceOf(app, runId);
  assert.deepEqual(await traceOf(app, child?.id ?? ''), trace);
  assert.equal(trace.runId, runId);
  assert.match(trace.traceId, /^[0-9a-f]{32}$/);
  const names = new Map(trace.spans.map(({ id, name }) => [id, name]));
  assert.deepEqual(
    trace.spans.map(({ name, parentId, kind }) => [name, names.get(parentId ?? '') ?? null, kind]),
    [
      ['acp.run', null, 'Internal'],
      ['acp.model.call', 'acp.run', 'Client'],
      ['acp.tool.call', 'acp.run', 'Internal'],
      ['acp.run', 'acp.tool.call', 'Internal'],
      ['acp.model.call', 'acp.run', 'Client'],
      ['acp.tool.call', 'acp.run', 'Internal'],
      ['acp.model.call', 'acp.run', 'Client'],
      ['acp.model.call', 'acp.run', 'Client'],
    ],
  );
  const [root, model, call, childRun] = trace.spans;
  assert.deepEqual(
    [root, childRun].map((span) => [
      span?.attributes['gen_ai.agent.name'],
      span?.attributes['acp.run.id'],
      span?.attributes['acp.run.depth'],
      span?.attributes['acp.run.status'],
      span?.attributes['gen_ai.agent.version'],
    ]),
    [
      ['helper', runId, '0', 'Completed', '1'],
      ['child', child?.id, '1', 'Completed', '1'],
    ],
  );
  assert.equal(model?.attributes['gen_ai.operation.name'], 'chat');
  assert.equal(model?.attributes['gen_ai.provider.name'], 'demo');
  assert.equal(model?.attributes['gen_ai.response.finish_reasons'], 'tool_calls');
  assert.equal(model?.attributes['acp.model.finish_reason'], 'ToolCalls');
  assert.ok(Number(model?.attributes['gen_ai.usage.input_tokens']) > 0);
  assert.equal(call?.attributes['acp.tool.outcome'], 'succeeded');
  for (const span of trace.spans) {
    assert.ok(span.endedAt !== null && span.endedAt >= span.startedAt);
    assert.equal(span.attributes['acp.tenant.id'], 'default');
    assert.match(span.spanId, /^[0-9a-f]{16}$/);
  }
  // OBS-17: neither messages nor payloads.
  assert.doesNotMatch(JSON.stringify(trace), /Three|Done|"ask"|"sum"/);
});

forEachDurableService(
  'OBS-13, OBS-16 failed trees are kept, others by their share; none where it is off',
  async (open) => {
    const app = await open({
      service: { Observability: { SuccessSampleRatio: 0 } },
      script: treeScript,
      agents,
      tools: [add],
    });
    const completed = await runStream(app.client, 'helper', 'Hi');
    assert.equal(await noTrace(app, completed.runId), 'trace-not-found');
    const failed = await runStream(app.client, 'helper', 'fail');
    const [run, call] = (await traceOf(app, failed.runId)).spans;
    assert.deepEqual([run?.status, run?.attributes['error.type']], ['Error', 'provider_error']);
    assert.deepEqual([call?.status, call?.attributes['error.type']], ['Error', 'provider_error']);
    assert.equal(await noTrace(app, '01890000-0000-7000-8000-000000000000'), 'run-not-found');

    const never = await open({
      service: { Observability: { SuccessSampleRatio: 0, AlwaysPersistFailures: false } },
      script: treeScript,
      agents,
      tools: [add],
    });
    assert.equal(await noTrace(never, (await runStream(never.client, 'helper', 'fail')).runId), 'trace-not-found');
    for (const settings of [{ Enabled: false }, { PersistSpans: false }]) {
      const off = await open({
        service: { Observability: { ...settings, SuccessSampleRatio: 1 } },
        script: treeScript,
        agents,
        tools: [add],
      });
      assert.equal(await noTrace(off, (await runStream(off.client, 'helper', 'fail')).runId), 'trace-not-found');
    }
  },
);

forEachDurableService(
  'OBS-14, OBS-17, OBS-18 spans beyond the limit are dropped; content only where it is asked for',
  async (open) => {
    const app = await open({
      service: {
        Observability: {
          SuccessSampleRatio: 1,
          MaxSpansPerRun: 2,
          RecordSensitiveData: true,
          IncludeAgentVersionTag: false,
        },
      },
      script: treeScript,
      tools: [add],
      agents,
    });
    const { runId } = await runStream(app.client, 'child', 'sum');
    const { spans } = await traceOf(app, runId);
    assert.deepEqual(
      spans.map(({ name }) => name),
      ['acp.run', 'acp.model.call'],
    );
    assert.equal(spans[0]?.attributes['gen_ai.agent.version'], undefined);
    assert.match(spans[1]?.attributes['gen_ai.input.messages'] ?? '', /"sum"/);
  },
);

overHttp(
  'OBS-11 the trace of a caller goes on in the run, its provider and its HTTP tools; a queued run links to it',
  async (open, t) => {
    const seen: (string | undefined)[] = [];
    const states: unknown[] = [];
    const service = createServer((request, response) => {
      seen.push(request.headers['traceparent'] as string | undefined);
      states.push(request.headers['tracestate']);
      response.setHeader('content-type', 'application/json').end('{}');
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    t.after(() => service.close());
    const folder = mkdtempSync(join(tmpdir(), 'acp-traces-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const { port } = service.address() as AddressInfo;
    const request = { method: 'GET', url: `http://127.0.0.1:${port}/` };
    const declared = { name: 'declared', description: 'Calls a service.', inputSchema: { type: 'object' }, request };
    writeFileSync(join(folder, 'tool.json'), JSON.stringify(declared));
    const app = await open({
      simulator: {},
      service: { ...all, Egress: { AllowPrivateNetworkTargets: true } },
      host: { Tools: [folder] },
      tools: [
        tool('own', async (_args, context) => {
          seen.push(context.traceparent);
          states.push(context.tracestate);
          return 'ok';
        }),
      ],
      agents: [{ name: 'helper', toolNames: ['own', 'declared'], model: { provider: 'openai', model: 'gpt-5' } }],
    });
    app.simulator.enqueue(
      { answer: { toolCalls: [{ id: 'c1', name: 'own', arguments: '{}' }] } },
      { answer: { toolCalls: [{ id: 'c2', name: 'declared', arguments: '{}' }] } },
      { answer: { text: ['Done.'] } },
    );
    const answer = await fetch(`${app.url}/api/agents/helper/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent, tracestate },
      body: JSON.stringify({ message: 'Hi', stream: false }),
    });
    assert.equal(answer.status, 200, await answer.clone().text());
    const trace = await traceOf(app, answer.headers.get('x-run-id') ?? '');
    assert.equal(trace.traceId, caller.traceId);
    const sent = app.simulator.requests.map(({ headers }) => headers['traceparent']);
    const spansOf = (name: string) => trace.spans.filter((span) => span.name === name).map(({ spanId }) => spanId);
    assert.deepEqual(
      sent,
      spansOf('acp.model.call').map((id) => `00-${caller.traceId}-${id}-01`),
    );
    assert.deepEqual(
      seen,
      spansOf('acp.tool.call').map((id) => `00-${caller.traceId}-${id}-01`),
    );
    const toProviders = () => app.simulator.requests.map(({ headers }) => headers['tracestate']);
    assert.deepEqual([states, toProviders()], [Array(2).fill(tracestate), Array(3).fill(tracestate)]);

    const queued = await fetch(`${app.url}/api/agents/helper/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent, tracestate, prefer: 'respond-async' },
      body: JSON.stringify({ message: 'Hi' }),
    });
    const { runId } = (await queued.json()) as { runId: string };
    for await (const _ of (await app.client.runs.events({ params: { runId } })).frames ?? []);
    const own = await traceOf(app, runId);
    assert.deepEqual(toProviders().slice(3), [undefined], 'the state of another trace');
    assert.notEqual(own.traceId, caller.traceId);
    assert.equal(own.spans[0]?.attributes['acp.link.trace_id'], caller.traceId);
  },
);

overHttp(
  'x-acp-overhead-ms says what the service added, without the waits for the model and the tools',
  async (open) => {
    let waited = 0;
    const app = await open({
      script: [
        { when: { tool: 'slow' }, reply: { text: 'Done.' } },
        { reply: { toolCalls: [{ name: 'slow', arguments: {} }] } },
      ],
      tools: [
        tool('slow', async () => {
          const since = performance.now();
          await pause(50);
          waited = performance.now() - since;
          return 'ok';
        }),
      ],
      agents: [{ name: 'helper', toolNames: ['slow'] }],
    });
    const since = performance.now();
    const { headers } = await runJson(app.client, 'helper', 'Hi');
    const wall = performance.now() - since;
    const overhead = Number(headers['x-acp-overhead-ms']);
    assert.match(headers['x-acp-overhead-ms'] ?? '', /^\d+\.\d\d$/);
    // Rounded to hundredths.
    assert.ok(overhead <= wall - waited + 0.01, `${overhead} of ${wall}, of which ${waited} in the tool`);
    const streamed = await start(app.client, 'helper', 'Hi');
    assert.equal(streamed.headers['x-acp-overhead-ms'], undefined);
    for await (const _ of streamed.frames ?? []);
    const repeat = { headers: { 'idempotency-key': 'k' } };
    await runJson(app.client, 'helper', 'Hi', repeat);
    assert.equal((await runJson(app.client, 'helper', 'Hi', repeat)).headers['x-acp-overhead-ms'], undefined);
  },
);

test('waits side by side count once', () => {
  const clock = new WaitClock();
  clock.enter();
  clock.enter();
  clock.leave();
  const before = clock.totalMs;
  assert.ok(clock.totalMs >= before, 'the other one still waits');
  clock.leave();
  const after = clock.totalMs;
  assert.equal(clock.totalMs, after);
  assert.ok(after >= before);
});
