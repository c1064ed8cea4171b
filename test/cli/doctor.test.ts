import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { findIsolation } from '../../src/features/skills/script-isolation.ts';
import { startIssuer } from '../support/issuer.ts';
import { createFolder, type Folder } from './support.ts';

const doctor = async (folder: Folder, settings: readonly string[], env: Readonly<Record<string, string>> = {}) => {
  const { code, stdout } = await folder.acp(['doctor', '--json', ...settings.flatMap((text) => ['--set', text])], {
    env,
  });
  const findings = JSON.parse(stdout) as { status: string; check: string; message: string }[];
  const told = new Map(findings.map(({ check, status, message }) => [check, `${status} ${message}`]));
  return { code, stdout, told };
};

test('doctor says what is reachable, by whom, and which setting makes it so', async (t) => {
  const issuer = await startIssuer(t);
  issuer.publish(issuer.newKey());
  const folder = createFolder(t);
  const plain = await doctor(folder, ['Host:Url=http://127.0.0.1:7070']);
  assert.equal(plain.code, 0, plain.stdout);
  assert.equal(plain.told.get('listens'), 'ok http://127.0.0.1:7070: this machine alone can connect (Host:Url)');
  assert.match(plain.told.get('callers') ?? '', /^ok of this machine only.*Host:AllowRemoteAccess is off/);
  assert.match(plain.told.get('access') ?? '', /^warn none; without one every user of this machine is Admin/);
  assert.match(plain.told.get('browsers') ?? '', /may not call/);
  assert.match(plain.told.get('proxies') ?? '', /^ok none is trusted/);
  assert.match(plain.told.get('routes') ?? '', /\/health\/ready need no credential\ndiagnostics off .*metrics off/);
  assert.equal(plain.told.get('encryption'), 'ok off: new content is stored in plain');
  assert.match(plain.told.get('egress') ?? '', /public addresses only/);

  const remote = ['Host:Url=http://0.0.0.0:7070', 'Host:AllowRemoteAccess=true'];
  const open = await doctor(folder, remote);
  assert.equal(open.code, 1);
  assert.match(open.told.get('callers') ?? '', /^fail remote access needs Host:AuthToken, an active API key/);

  const made = await folder.acp(['keys', 'create', 'operations', '--scope', 'PlatformAdmin', '--json']);
  assert.equal(made.code, 0, made.stderr);
  const guarded = await doctor(
    folder,
    [
      ...remote,
      'Host:AllowedOrigins=["https://console.example.org"]',
      'Host:TrustedProxies=["10.0.0.0/8"]',
      `Host:Oidc:Issuer=${issuer.url}`,
      'Host:Oidc:Audience=acp',
      'Host:Health:LivePath=',
      'Host:Metrics:Path=/metrics',
      'Host:EnableDiagnosticsEndpoint=true',
      'Service:Egress:AllowPrivateNetworkTargets=true',
      'Service:AtRest:ActiveKeyId=b',
      `Service:AtRest:Keys:a=${Buffer.alloc(32, 1).toString('base64')}`,
      `Service:AtRest:Keys:b=${Buffer.alloc(32, 2).toString('base64')}`,
    ],
    { Host__AuthToken: 'very-secret-token' },
  );
  assert.equal(guarded.code, 0, guarded.stdout);
  assert.equal(guarded.told.get('listens'), 'ok http://0.0.0.0:7070: other machines, too, can connect (Host:Url)');
  assert.match(guarded.told.get('callers') ?? '', /^ok of other machines are served with a credential/);
  assert.equal(
    guarded.told.get('access'),
    `ok the shared token (Host:AuthToken), 1 API key, tokens of ${issuer.url} (Host:Oidc); nobody is served without one`,
  );
  assert.match(guarded.told.get('browsers') ?? '', /pages of https:\/\/console\.example\.org may call/);
  assert.match(guarded.told.get('proxies') ?? '', /^ok 10\.0\.0\.0\/8 may name/);
  assert.doesNotMatch(guarded.told.get('routes') ?? '', /\/health\/live/);
  assert.match(guarded.told.get('routes') ?? '', /diagnostics on .*metrics \/metrics/);
  assert.equal(guarded.told.get('encryption'), 'ok new content is encrypted with key "b"; former keys: a');
  assert.match(guarded.told.get('egress') ?? '', /private addresses, too/);
  assert.ok(!guarded.stdout.includes('very-secret-token'));

  const { record } = JSON.parse(made.stdout) as { record: { id: string } };
  assert.equal((await folder.acp(['keys', 'revoke', record.id])).code, 0);
  const revoked = await doctor(folder, remote);
  assert.match(revoked.told.get('callers') ?? '', /^fail/, 'a revoked key opens nothing');
});

test('SEC-52 content under a key that the configuration no longer has is a failure that names the key', async (t) => {
  const folder = createFolder(t);
  const settings = [
    'Service:AtRest:ActiveKeyId=lost',
    `Service:AtRest:Keys:lost=${Buffer.alloc(32, 1).toString('base64')}`,
  ];
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'hello.yaml'])).code, 0);
  const given = settings.flatMap((setting) => ['--set', setting]);
  assert.equal((await folder.acp(['run', 'hello', 'Hi', ...given])).code, 0);
  assert.equal((await doctor(folder, settings)).code, 0);
  const { code, told } = await doctor(folder, []);
  assert.equal(code, 1);
  assert.match(
    told.get('encryption') ?? '',
    /^fail stored content is under the key "lost", which is not in Service:AtRest:Keys/,
  );
});

test('doctor says what keeps scripts together, and Isolation: Required is refused where nothing does', async (t) => {
  const folder = createFolder(t);
  const on = ['Host:SkillScripts:Register=true', 'Service:Skills:Scripts:PlatformIsolationAcknowledged=true'];
  const required = [...on, 'Service:Skills:Scripts:Isolation=Required'];
  const withoutTools = { PATH: folder.path };
  assert.match((await doctor(folder, [])).told.get('scripts') ?? '', /^ok off/);
  const auto = await doctor(folder, on, withoutTools);
  assert.match(
    auto.told.get('scripts') ?? '',
    /^warn no PID namespace can be made here \(unshare\).*one that hides stays/,
  );
  assert.equal(auto.code, 0, auto.stdout);
  const refused = await doctor(folder, required, withoutTools);
  assert.match(refused.told.get('scripts') ?? '', /^fail no PID namespace/);
  assert.match(refused.told.get('service') ?? '', /^fail .*Service:Skills:Scripts:Isolation is Required/);
  assert.equal(refused.code, 1);
  const started = await folder.acp(['serve', ...required.flatMap((text) => ['--set', text])], { env: withoutTools });
  assert.notEqual(started.code, 0);
  assert.match(started.stderr, /Service:Skills:Scripts:Isolation is Required/);
  if ((await findIsolation()) === null) return t.diagnostic('this system makes no PID namespaces');
  const held = await doctor(folder, required);
  assert.match(held.told.get('scripts') ?? '', /^ok each in a PID namespace of its own \(\/.*unshare\)/);
  assert.equal(held.told.get('service'), undefined);
});

test('doctor warns of a store that others may open', async (t) => {
  const folder = createFolder(t);
  assert.equal((await folder.acp(['agents', 'list'])).code, 0);
  const store = join(folder.path, 'data/acp.db');
  assert.doesNotMatch((await doctor(folder, [])).told.get('store') ?? '', /others/);
  chmodSync(store, 0o644);
  assert.match(
    (await doctor(folder, [])).told.get('store') ?? '',
    /^warn others may open it \(mode 644\)\n`chmod 600 /,
  );
});

test('SEC-14 doctor asks the issuer for what the service would ask it for', async (t) => {
  const issuer = await startIssuer(t);
  const folder = createFolder(t);
  const settings = [`Host:Oidc:Issuer=${issuer.url}`, 'Host:Oidc:Audience=acp'];
  issuer.publish(issuer.newKey(), issuer.newKey('RS256'));
  const good = await doctor(folder, settings);
  assert.equal(good.code, 0, good.stdout);
  assert.equal(good.told.get('issuer'), `ok ${issuer.url} publishes 2 keys at ${issuer.url}/keys\nEC ES256\nRSA RS256`);
  for (const [fault, message] of [
    ['other', /names another issuer than Host:Oidc:Issuer/],
    ['down', /answered 500/],
    ['not-json', /is not valid JSON/],
  ] as const) {
    issuer.fault = fault;
    const bad = await doctor(folder, settings);
    assert.equal(bad.code, 1);
    assert.match(bad.told.get('issuer') ?? '', new RegExp(`^fail ${issuer.url}: no token can be checked`));
    assert.match(bad.told.get('issuer') ?? '', message);
  }
  assert.equal((await doctor(folder, [])).told.has('issuer'), false);
});

/** An endpoint on this machine; its port. */
const endpoint = async (t: TestContext, listener: RequestListener): Promise<number> => {
  const server = createServer(listener).listen(0, '127.0.0.1');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
};

test('doctor asks every provider for its models, each for a limited time, and says what it did not try', async (t) => {
  const folder = createFolder(t);
  const good = await endpoint(t, (_request, response) => response.end('{"data":[{"id":"one"},{"id":"two"}]}'));
  const refusing = await endpoint(t, (_request, response) => response.writeHead(401).end('{"error":{"message":"no"}}'));
  const forbidding = await endpoint(t, (_request, response) => response.writeHead(403).end());
  const broken = await endpoint(t, (_request, response) => response.writeHead(500).end());
  const silent = await endpoint(t, () => undefined);
  const url = (port: number) => `http://127.0.0.1:${port}/v1`;
  // Nothing listens at the last one: no program uses that loopback address.
  const settings = Object.entries({
    ...{
      good: url(good),
      refusing: url(refusing),
      forbidding: url(forbidding),
      broken: url(broken),
      silent: url(silent),
      dead: 'http://127.0.0.9:9/v1',
    },
  }).map(([name, address]) => `Service:Providers:Compatible:${name}:Endpoint=${address}`);
  const { code, stdout } = await folder.acp([
    ...['doctor', '--json'],
    ...[...settings, 'Service:Providers:Compatible:silent:Timeout=100ms'].flatMap((text) => ['--set', text]),
  ]);
  assert.equal(code, 1, stdout);
  const findings = JSON.parse(stdout) as { status: string; check: string; message: string }[];
  const providers = findings
    .filter(({ check }) => check === 'provider')
    .map(({ status, message }) => `${status} ${message}`);
  const about = (name: string) => providers.find((text) => text.includes(` ${name} (`)) ?? '';
  assert.match(about('good'), /^ok good \(compatible\): answers in \d+ ms; models listed: 2$/);
  assert.equal(about('refusing'), 'fail refusing (compatible): it answers 401: the key is not accepted');
  assert.equal(about('forbidding'), 'fail forbidding (compatible): it answers 403: the key is not accepted');
  assert.equal(about('broken'), 'fail broken (compatible): it answers 500 when asked for its models');
  assert.equal(about('silent'), 'fail silent (compatible): it does not answer in time');
  assert.equal(about('dead'), 'fail dead (compatible): nothing answers at its address');
  assert.match(about('demo'), /^ok demo \(scripted\): /);
  assert.deepEqual(
    findings.filter(({ status }) => status === 'skip').map(({ check }) => check),
    ['mcp', 'calls'],
  );
});

test('doctor reports what a running service says, in its folder and by its address', async (t) => {
  const folder = createFolder(t);
  const settings = ['Host:EnableDiagnosticsEndpoint=true', 'Service:Providers:Scripted:other:File=./scripts/demo.yaml'];
  const { url } = await folder.serve(settings.flatMap((text) => ['--set', text]));
  const beside = await folder.acp(['doctor', '--json']);
  assert.equal(beside.code, 0, beside.stdout);
  const elsewhere = createFolder(t);
  rmSync(join(elsewhere.path, 'service.yaml'));
  const named = await elsewhere.acp(['doctor', '--json', '--url', url]);
  assert.equal(named.code, 0, named.stdout);
  for (const [which, { stdout }] of Object.entries({ beside, named })) {
    const findings = JSON.parse(stdout) as { status: string; check: string; message: string }[];
    const of = (check: string) =>
      findings.flatMap((each) => (each.check === check ? [`${each.status} ${each.message}`] : []));
    assert.ok(of('service')[0]?.startsWith(`ok ${url} answers: acp `), which);
    assert.deepEqual(
      of('provider').map((text) => text.split(':')[0]),
      ['skip demo', 'skip other'],
    );
    assert.deepEqual(of('tools'), ['ok clock_now']);
    assert.deepEqual(of('migrations').at(-1), 'ok none pending');
    // Where it listens and whom it serves was set for the service, and not here.
    assert.deepEqual([of('listens'), of('access'), of('egress')], [[], [], []]);
    assert.equal(of('libraries').length, which === 'beside' ? 1 : 0);
    assert.equal(
      of('config').some((text) => text.startsWith('skip not tried: files, store')),
      which === 'named',
    );
  }
  const nowhere = await elsewhere.acp(['doctor', '--url', 'http://127.0.0.9:9']);
  assert.equal(nowhere.code, 1);
  assert.match(nowhere.stdout, /^fail {2}service {5}http:\/\/127\.0\.0\.9:9.*cannot be reached/m);
});
