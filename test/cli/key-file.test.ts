import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createFolder, type Folder } from './support.ts';

const mine = ['--config', 'mine/service.yaml'];
const anyPort = ['--set', 'Host:Url=http://127.0.0.1:0'];

/** A folder in which `acp init mine` was called, and what it said. */
const initialized = async (t: Parameters<typeof createFolder>[0]) => {
  const folder = createFolder(t);
  const outcome = await folder.acp(['init', 'mine']);
  assert.equal(outcome.code, 0, outcome.stderr);
  const key = readFileSync(join(folder.path, 'mine/acp.key'), 'utf8').trim();
  return { folder, outcome, key };
};

const refusedAnonymously = async (url: string): Promise<void> => {
  const answer = await fetch(`${url}/api/agents`);
  assert.equal(answer.status, 401);
};

const listens = async (folder: Folder) => folder.serve([...mine, ...anyPort]);

test('init writes a key that only its user reads, and a service that nobody calls without one', async (t) => {
  const { folder, outcome, key } = await initialized(t);
  assert.match(outcome.stdout, /^wrote {2}mine\/acp\.key$/m);
  assert.match(key, /^[0-9a-f]{64}$/);
  assert.equal(statSync(join(folder.path, 'mine/acp.key')).mode & 0o777, 0o600);
  assert.match(readFileSync(join(folder.path, 'mine/.gitignore'), 'utf8'), /^acp\.key$/m);
  const { url } = await listens(folder);
  await refusedAnonymously(url);
  const authorized = await fetch(`${url}/api/agents`, { headers: { authorization: `Bearer ${key}` } });
  assert.equal(authorized.status, 200);
  const other = await initialized(t);
  assert.notEqual(other.key, key);
});

test('commands use the key by themselves, with and without the address of the service', async (t) => {
  const { folder, key } = await initialized(t);
  const { url, running } = await listens(folder);
  for (const where of [mine, [...mine, '--url', url]]) {
    const applied = await folder.acp(['agents', 'apply', '-f', 'mine/agents', ...where]);
    assert.equal(applied.code, 0, applied.stderr);
    const run = await folder.acp(['run', 'hello', 'What time is it?', ...where]);
    assert.equal(run.code, 0, run.stderr);
    const listed = await folder.acp(['runs', 'list', '--json', ...where]);
    assert.equal(listed.code, 0, listed.stderr);
    for (const { stdout, stderr } of [applied, run, listed]) assert.ok(!(stdout + stderr).includes(key));
  }
  // What was given by hand counts more, and what is wrong is not made good by the key.
  const wrong = await folder.acp(['agents', 'list', ...mine], { env: { ACP_TOKEN: 'wrong' } });
  assert.equal(wrong.code, 3, wrong.stderr);
  // Without this configuration the address alone opens nothing.
  const stranger = createFolder(t);
  const refused = await stranger.acp(['agents', 'list', '--url', url]);
  assert.equal(refused.code, 3, refused.stderr);
  assert.match(refused.stderr, /acp\.key/);
  const given = await stranger.acp(['agents', 'list', '--url', url, '--token-file', join(folder.path, 'mine/acp.key')]);
  assert.equal(given.code, 0, given.stderr);
  running.child.kill('SIGTERM');
  await running.done;
});

test('the key goes to the service that owns the store, and to no other address', async (t) => {
  const { folder } = await initialized(t);
  await listens(folder);
  const seen: (string | undefined)[] = [];
  const other = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
  }).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  for (const host of ['127.0.0.1', 'localhost'])
    await folder.acp(['agents', 'list', '--json', ...mine, '--url', `http://${host}:${port}`]);
  assert.deepEqual(seen, [undefined, undefined]);
});

test('init leaves a .gitignore alone that is there, and says what belongs into it', async (t) => {
  const folder = createFolder(t);
  folder.write('mine/.gitignore', 'node_modules\n');
  const { code, stdout, stderr } = await folder.acp(['init', 'mine']);
  assert.equal(code, 0, stderr);
  assert.equal(readFileSync(join(folder.path, 'mine/.gitignore'), 'utf8'), 'node_modules\n');
  assert.doesNotMatch(stdout, /gitignore/);
  assert.match(stderr, /Add acp\.key to \.gitignore/);
});

test('serve says when callers without a credential are administrators, and only then', async (t) => {
  const folder = createFolder(t);
  const told = /Callers of this machine need no credential and are administrators/;
  const saying = async (...settings: readonly string[]): Promise<string> => {
    const { running } = await folder.serve(['--set', 'Host:LogLevel=warn', ...settings]);
    running.child.kill('SIGTERM');
    const { stdout, stderr } = await running.done;
    return stdout + stderr;
  };
  assert.match(await saying(), told);
  assert.doesNotMatch(await saying('--set', 'Host:AnonymousLoopback=false'), told);
  const doctor = async (...settings: readonly string[]) => (await folder.acp(['doctor', ...settings])).stdout;
  assert.match(
    await doctor(),
    /^warn {2}access .*every user of this machine is Admin \(Host:AnonymousLoopback is on\)$/m,
  );
  assert.match(
    await doctor('--set', 'Host:AnonymousLoopback=false'),
    /^warn {2}access .*none, and nobody is served without one: make a key with `acp keys create`$/m,
  );
});

test('commands that lack what only the service has are told how to ask it all the same', async (t) => {
  const folder = createFolder(t);
  folder.write('service.yaml', `Service: { Providers: { OpenAI: { ApiKey: "\${env:KEY_OF_THE_SERVICE}" } } }\n`);
  const env = { KEY_OF_THE_SERVICE: 'secret' };
  const { url } = await folder.serve(['--set', 'Service:Providers:OpenAI:ApiKey=secret', ...anyPort]);
  assert.equal((await folder.acp(['agents', 'list'], { env })).code, 0);
  const lacking = await folder.acp(['agents', 'list']);
  assert.equal(lacking.code, 2);
  assert.match(
    lacking.stderr,
    /variable KEY_OF_THE_SERVICE is not set\nhint: A service that runs is asked .* --url, .* ACP_TOKEN/,
  );
  assert.equal((await folder.acp(['agents', 'list', '--url', url])).code, 0, 'the address stands for itself');
  assert.doesNotMatch((await folder.acp(['config'])).stderr, /hint/, 'where the configuration itself is meant');
});
