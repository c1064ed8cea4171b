import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Span } from '../../../src/core/telemetry/span.ts';
import { newSpanId } from '../../../src/core/telemetry/trace-context.ts';
import { createOtlpExport } from '../../../src/providers/telemetry/otlp-export.ts';
import { otlpSignals } from '../../../src/providers/telemetry/otlp-settings.ts';
import { overHttp } from '../../support/app.ts';
import { program, programEnvironment } from '../../support/program.ts';
import {
  metricsOf,
  of,
  openReceiver,
  pathsOf,
  spansOf,
  withEnvironment,
} from '../../support/telemetry/otlp-receiver.ts';
import { attributes, hex, type Message, messages, number, text } from '../../support/telemetry/protobuf.ts';
import { swept } from '../retention/retention-world.ts';
import { enqueue, followToEnd, runJson, tool } from '../runs/run-calls.ts';
import { newest, save, sendTest, webhookSetup } from '../webhooks/webhook-world.ts';

overHttp(
  'OBS-24, OBS-11, OBS-17, OBS-20 traces, metrics and logs leave by OTLP, with the GenAI conventions',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, {
      OTEL_EXPORTER_OTLP_ENDPOINT: url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-key=abc',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    });
    const app = await open({
      service: { Observability: { SuccessSampleRatio: 0 } },
      script: [
        { when: { message: 'fail' }, reply: { error: 'provider_unavailable' } },
        { when: { tool: 'add' }, reply: { text: 'Sum.' } },
        { reply: { toolCalls: [{ name: 'add', arguments: {} }] } },
      ],
      tools: [tool('add', async () => 3)],
      agents: [{ name: 'helper', toolNames: ['add'] }],
    });
    const { runId } = await runJson(app.client, 'helper', 'A word that stays here.');
    const failed = await fetch(`${app.url}/api/agents/helper/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ message: 'fail', stream: false }),
    });
    assert.equal(failed.status, 502);
    await app.close();

    const traces = of(received, '/v1/traces');
    const resources = traces.flatMap(({ body }) => messages(body, 1));
    assert.equal(traces[0]?.headers['x-key'], 'abc');
    const [resource] = messages(resources[0] ?? new Map(), 1);
    const told = attributes(resource ?? new Map(), 1);
    assert.deepEqual([told['service.name'], told['deployment.environment.name']], ['acp', 'test']);
    assert.equal(typeof told['service.instance.id'], 'string');
    const spans = resources.flatMap((one) => messages(one, 2)).flatMap((scope) => messages(scope, 2));
    const bySpanId = new Map(spans.map((span) => [hex(span, 2), span]));
    const path = (span: Message): string => {
      const parent = bySpanId.get(hex(span, 4));
      return parent === undefined ? text(span, 5) : `${path(parent)} > ${text(span, 5)}`;
    };
    const request = 'POST /api/agents/{name}/run';
    const paths = spans.map(path).sort();
    for (const expected of [
      request,
      `${request} > invoke_agent helper`,
      `${request} > invoke_agent helper > chat demo-1`,
      `${request} > invoke_agent helper > execute_tool add`,
      `${request} > acp.agent.compile`,
    ])
      assert.ok(paths.includes(expected), `${expected} in ${paths.join('; ')}`);
    const run = spans.find((span) => attributes(span, 9)['acp.run.id'] === runId);
    assert.ok(run !== undefined);
    assert.deepEqual(
      [attributes(run, 9)['gen_ai.operation.name'], attributes(run, 9)['gen_ai.agent.name'], number(run, 6)],
      ['invoke_agent', 'helper', 1],
    );
    const compiles = spans.filter((span) => text(span, 5) === 'acp.agent.compile').map((span) => attributes(span, 9));
    assert.deepEqual(
      compiles.map((one) => [one['gen_ai.agent.name'], one['gen_ai.agent.version'], one['acp.cache.hit']]),
      [
        ['helper', '1', false],
        ['helper', '1', true],
      ],
    );
    const broken = spans.find((span) => attributes(span, 9)['error.type'] === 'provider_unavailable');
    assert.equal(number(messages(broken ?? new Map(), 15)[0] ?? new Map(), 3), 2);

    const metrics = metricsOf(received);
    const metric = (name: string): Message => metrics.find((one) => text(one, 1) === name) ?? assert.fail(name);
    const points = (one: Message, kind: 7 | 9) => messages(messages(one, kind)[0] ?? new Map(), 1);
    const runs = points(metric('acp.runs'), 7).map((point) => attributes(point, 7));
    assert.deepEqual(runs.map((point) => point['acp.run.status']).sort(), ['Completed', 'Failed']);
    assert.ok(runs.every((point) => point['acp.tenant.id'] === 'default' && !('acp.run.id' in point)));
    assert.ok(points(metric('acp.model.duration'), 9).length >= 2);
    assert.equal(text(metric('acp.run.duration'), 3), 's');

    const logs = of(received, '/v1/logs')
      .flatMap(({ body }) => messages(body, 1))
      .flatMap((one) => messages(one, 2))
      .flatMap((scope) => messages(scope, 2));
    const line = logs.find((record) => text(messages(record, 5)[0] ?? new Map(), 1) === 'A run failed');
    assert.ok(line !== undefined);
    assert.equal(typeof attributes(line, 6)['requestId'], 'string');
    assert.match(hex(line, 9), /^[0-9a-f]{32}$/);
    const everything = received.map(({ body }) => [...body.values()].flat().map(String).join()).join();
    assert.doesNotMatch(everything, /A word that stays here/);
  },
);

overHttp(
  'OBS-11 jobs, sweeps, audit checks, exports of a person and refused requests have spans where they belong',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces` });
    const resolver = { resolve: async ({ id }: { id: string }) => ({ userIds: [id], sessionIds: [], ownerIds: [] }) };
    const app = await open(webhookSetup({}, { module: { dataSubjectResolver: resolver } }));
    await save(app.client, 'http://127.0.0.1:1/');
    await sendTest(app.client);
    await newest(app.client, 'the attempt was made', ({ attempt }) => attempt === 1);
    await followToEnd(app.client, await enqueue(app.client, 'helper', { message: 'Hi' }));
    await app.client.retention.save({ params: { target: 'Jobs' }, body: { maxAgeDays: 1 } });
    await swept(app, 'Jobs');
    await app.client.audit.verify({ query: {} });
    const exported = await fetch(`${app.url}/api/data-subjects/the-person/export`);
    assert.equal(exported.status, 200);
    await exported.text();
    const refused = await fetch(`${app.url}/api/agents`, { headers: { authorization: 'Bearer nonsense' } });
    assert.equal(refused.status, 401);
    await app.close();
    const everything = received.map(({ body }) => [...body.values()].flat().map(String).join()).join();
    assert.doesNotMatch(everything, /the-person/, 'SUBJ never whose data it was');
    const paths = pathsOf(received);
    for (const expected of [
      'acp.job',
      'acp.job > invoke_agent helper',
      'acp.job > invoke_agent helper > chat demo-1',
      'acp.job > acp.retention.sweep',
      'acp.job > acp.webhook.delivery',
      'GET /api/audit/verify > acp.audit.verify',
      'GET /api/data-subjects/{id}/export > acp.data_subject.export',
      'GET /api/agents',
    ])
      assert.ok(paths.includes(expected), `${expected} in ${paths.join('; ')}`);
  },
);

overHttp(
  'EVAL-36 OBS-11 a judge has a span in the trace of the run, its scores as events, and a histogram',
  async (open, t) => {
    const { url, received } = await openReceiver(t);
    withEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: url });
    const judges = [
      { name: 'tone', judge: () => ({ score: 75, reason: 'A word that stays here.', metrics: { warmth: 20 } }) },
      { name: 'broken', judge: () => Promise.reject(new TypeError('A word that stays here.')) },
    ];
    const app = await open({
      service: { Observability: { SuccessSampleRatio: 1 } },
      agents: [{ name: 'helper' }],
      module: { judges },
    });
    const { runId } = await runJson(app.client, 'helper', 'Hi');
    await app.client.judges.score({ params: { runId } });
    await app.close();
    const spans = spansOf(received);
    const run = spans.find((span) => text(span, 5) === 'invoke_agent helper') ?? assert.fail('the run');
    const request = spans.find((span) => text(span, 5) === 'POST /api/runs/{runId}/judge') ?? assert.fail('request');
    const told = spans
      .filter((span) => text(span, 5) === 'acp.judge')
      .map((span) => {
        assert.deepEqual([hex(span, 1), hex(span, 4)], [hex(run, 1), hex(run, 2)]);
        assert.deepEqual(
          messages(span, 13).map((link) => hex(link, 2)),
          [hex(request, 2)],
        );
        return [attributes(span, 9), messages(span, 11).map((event) => [text(event, 2), attributes(event, 3)])];
      });
    const agent = { 'gen_ai.agent.name': 'helper' };
    const result = (name: string, value: number) => [
      'gen_ai.evaluation.result',
      { 'gen_ai.evaluation.name': name, 'gen_ai.evaluation.score.value': value },
    ];
    assert.deepEqual(told, [
      [{ 'gen_ai.evaluation.name': 'tone', ...agent }, [result('tone', 75), result('tone.warmth', 20)]],
      [{ 'gen_ai.evaluation.name': 'broken', ...agent, 'error.type': 'TypeError' }, []],
    ]);
    const metrics = metricsOf(received);
    const scored = metrics.find((one) => text(one, 1) === 'acp.judge.score') ?? assert.fail('acp.judge.score');
    const points = messages(messages(scored, 9)[0] ?? new Map(), 1);
    assert.deepEqual(
      points.map((point) => attributes(point, 9)),
      [{ 'acp.judge.name': 'tone', ...agent }],
      'metrics of a judge are no scores',
    );
    const everything = received.map(({ body }) => [...body.values()].flat().map(String).join()).join();
    assert.doesNotMatch(everything, /A word that stays here/);
  },
);

test('OBS-24 without an endpoint, or when switched off, nothing is exported and nothing is loaded', async () => {
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318' };
  const none = { traces: false, metrics: false, logs: false };
  assert.deepEqual(otlpSignals({}), none);
  assert.deepEqual(otlpSignals({ ...on, OTEL_SDK_DISABLED: 'true' }), none);
  assert.deepEqual(otlpSignals(on), { traces: true, metrics: true, logs: true });
  assert.deepEqual(otlpSignals({ ...on, OTEL_METRICS_EXPORTER: 'none' }), { traces: true, metrics: false, logs: true });
  const only = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:4318/v1/traces' };
  assert.deepEqual(otlpSignals(only), { ...none, traces: true });
  const deps = { version: '1', instanceId: 'i', collect: async () => [], problem: () => undefined };
  assert.equal(await createOtlpExport({ ...deps, env: {} }), null);
});

test('OBS-24 the sampler of the environment decides what is exported', async (t) => {
  const { url } = await openReceiver(t);
  const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url };
  const deps = { version: '1', instanceId: 'i', collect: async () => [], problem: () => undefined };
  const decisions = async (sampler: Readonly<Record<string, string>>) => {
    const out = await createOtlpExport({ ...deps, env: { ...env, ...sampler } });
    const parent = { traceId: 'f'.repeat(32), spanId: newSpanId() };
    const spans = out?.spans ?? assert.fail('traces are exported');
    const answer = [
      spans.samples('f'.repeat(32), null),
      spans.samples('f'.repeat(32), { ...parent, sampled: false }),
      spans.samples('f'.repeat(32), { ...parent, sampled: true }),
    ];
    await out?.close();
    return answer;
  };
  assert.deepEqual(await decisions({}), [true, false, true]);
  assert.deepEqual(await decisions({ OTEL_TRACES_SAMPLER: 'always_off' }), [false, false, false]);
  const tenth = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' };
  assert.deepEqual(await decisions(tenth), [false, false, true]);
});

test('OBS-26 a receiver that never answers neither fails a request nor keeps the process from ending', async (t) => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  withEnvironment(t, { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  const out = await createOtlpExport({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
    version: '1',
    instanceId: 'i',
    collect: async () => [],
    problem: () => undefined,
  });
  const span = new Span('n', 'Internal', { traceId: 'a'.repeat(32), sampled: true });
  span.end();
  out?.spans?.ended(span);
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  out?.log?.({ level: 'info', fields: { circle, count: 1n, call: () => undefined }, message: 'A line' });
  await out?.close();
});

test('OBS-26 a receiver that hangs does not hold up the end of the program either', async (t) => {
  const server = createServer(() => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'acp-hung-'));
  t.after(() => {
    server.close();
    server.closeAllConnections();
    rmSync(folder, { recursive: true, force: true });
  });
  const [command, file] = program;
  const child = spawn(command, [file, 'serve', '--set', 'Host:Url=http://127.0.0.1:0'], {
    cwd: folder,
    env: {
      ...process.env,
      ...programEnvironment,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      // Its own patience: without a limit of the service's the program would end after ten minutes.
      OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
      OTEL_BSP_EXPORT_TIMEOUT: '600000',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  let told = '';
  for await (const part of child.stderr) {
    told += String(part);
    if (/serves http/.test(told)) break;
  }
  const [, url = ''] = /serves (\S+)/.exec(told) ?? [];
  assert.equal((await fetch(`${url}/api/agents`)).status, 200);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});
