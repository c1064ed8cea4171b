import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { type TestContext, test } from 'node:test';
import { parse } from 'yaml';
import { call, openStream } from '../e2e/wire.ts';
import { eventually, processMs } from '../support/eventually.ts';
import { openFleet } from '../support/fleet.ts';
import { skip as noServer } from './members.ts';

const deploy = join(import.meta.dirname, '../../docs/deploy');
const hasCaddy = spawnSync('caddy', ['version'], { stdio: 'ignore' }).error === undefined;
const skip = hasCaddy ? noServer : 'Caddy is not installed';

const freePort = async (): Promise<number> => {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  return typeof address === 'object' && address !== null ? address.port : assert.fail('no port');
};

/** Caddy with the file of the deployment, whose names and ports are those of this machine; its URL. */
const startProxy = async (t: TestContext, upstreams: readonly string[]): Promise<string> => {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'acp-caddy-'));
  const site = readFileSync(join(deploy, 'Caddyfile'), 'utf8')
    .replace(':8080', `http://127.0.0.1:${port}`)
    .replace('acp-1:7070 acp-2:7070', upstreams.map((url) => new URL(url).host).join(' '));
  writeFileSync(join(folder, 'Caddyfile'), `{\n  admin off\n  auto_https off\n}\n${site}`);
  const child = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')], {
    env: { HOME: folder, PATH: process.env['PATH'], XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  return `http://127.0.0.1:${port}`;
};

const token = 'a'.repeat(64);
const headers = { authorization: `Bearer ${token}` };

const isReady = (url: string): Promise<boolean> =>
  call(`${url}/health/ready`).then(
    ({ status }) => status === 200,
    () => false,
  );

test('two processes behind the proxy of the deployment: streams come as they are written, and a process that stops is left out', {
  skip,
  timeout: 120_000,
}, async (t) => {
  const { Persistence: _, ...service } = parse(readFileSync(join(deploy, 'service.yaml'), 'utf8')).Service;
  const text = Array.from({ length: 60 }, (_word, index) => `word${index} `).join('');
  const host = {
    AllowRemoteAccess: true,
    AnonymousLoopback: false,
    AuthToken: token,
    TrustedProxies: ['127.0.0.1/32'],
  };
  const fleet = await openFleet({
    processes: 2,
    service,
    host,
    script: [{ reply: { text, chunkSize: 8, delay: '50ms' } }],
  });
  t.after(() => fleet.close());
  const url = await startProxy(
    t,
    fleet.members.map((member) => member.url),
  );
  await eventually('the proxy passes requests on', () => isReady(url), processMs);
  const agent = { name: 'hello', model: { provider: 'demo', model: 'm' } };
  const saved = await call(`${url}/api/agents`, { method: 'POST', headers, body: agent });
  assert.equal(saved.status, 201, saved.text);
  const streams = await Promise.all(
    [0, 1].map(() => openStream(`${url}/api/agents/hello/run`, { method: 'POST', headers, body: { message: 'Hi' } })),
  );
  for (const stream of streams) {
    await stream.first('message.delta');
    const run = (await call(`${url}/api/runs/${stream.runId}`, { headers })).json<{ status: string }>();
    assert.equal(run.status, 'Running', 'a frame has come through while its run goes on');
  }
  const [first] = fleet.members;
  assert.ok(first !== undefined);
  const stopping = fleet.end(first, 'stop');
  for (let count = 0; count < 20; count += 1) assert.equal((await call(`${url}/api/agents`, { headers })).status, 200);
  await Promise.all(streams.map((stream) => stream.ended));
  await stopping;
  for (const { runId } of streams)
    assert.equal((await call(`${url}/api/runs/${runId}`, { headers })).json<{ status: string }>().status, 'Completed');
});
