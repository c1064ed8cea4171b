import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createFolder } from './support.ts';

describe('serve', () => {
  test('says where it listens, ends with 0 on SIGTERM and on SIGINT, and can be started again', async (t) => {
    const folder = createFolder(t);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const running = folder.start(['serve']);
      const line = await running.until('\n', 'stderr');
      assert.match(line, /^acp \S+ serves http:\/\/127\.0\.0\.1:\d+ \(process \d+\)\n$/);
      running.child.kill(signal);
      assert.deepEqual(await running.done, { code: 0, stdout: '', stderr: line });
    }
  });

  test('wait returns when the service is ready, and says what to do when none comes', async (t) => {
    const folder = createFolder(t);
    const none = await folder.acp(['wait', '--timeout', '0.2']);
    assert.equal(none.code, 8);
    assert.match(none.stderr, /^error: The configured store has no service after 0\.2 s\. Start it with `acp serve`/);
    const waiting = folder.start(['wait']);
    const { url } = await folder.serve();
    assert.deepEqual(await waiting.done, { code: 0, stdout: '', stderr: '' });
    assert.deepEqual(JSON.parse((await folder.acp(['wait', '--json'])).stdout), { url });
    assert.equal((await folder.acp(['wait', '--url', url])).code, 0);
    const dead = await folder.acp(['wait', '--url', 'http://127.0.0.1:1', '--timeout', '0.2']);
    assert.deepEqual([dead.code, dead.stderr.includes('http://127.0.0.1:1 was not ready')], [8, true]);
    assert.equal((await folder.acp(['wait', '--timeout', 'soon'])).code, 2);
  });

  test('what a module has left open keeps neither a service that was stopped nor a command that has ended', async (t) => {
    const folder = createFolder(t);
    folder.write(
      'open.mjs',
      "import { createServer } from 'node:http';\ncreateServer().listen(0, '127.0.0.1');\nsetInterval(() => {}, 50);\nexport default { name: 'open' };\n",
    );
    const open = ['--set', 'Host:Modules=["./modules/clock.mjs","./open.mjs"]'];
    const { running } = await folder.serve(open);
    running.child.kill('SIGTERM');
    assert.equal((await running.done).code, 0);

    const ended = (...args: string[]) => folder.acp([...args, ...open], { ownProcess: true });
    assert.deepEqual(await ended('agents', 'apply', '-f', 'hello.yaml'), {
      code: 0,
      stdout: 'created    hello  version 1\n',
      stderr: '',
    });
    const listed = await ended('agents', 'list', '--json');
    assert.deepEqual(
      JSON.parse(listed.stdout).map(({ name }: { name: string }) => name),
      ['hello'],
    );
    assert.equal((await ended('agents', 'get', 'nobody')).code, 4);
    assert.equal((await ended('doctor')).code, 0);
  });

  test('a second signal ends it at once', async (t) => {
    const folder = createFolder(t);
    const { running } = await folder.serve(['--set', 'Service:Drain:Timeout=60s', '--set', 'Host:LogLevel=info']);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const run = folder.start(['run', 'hello', 'stall', '--json', '--stream']);
    await run.until('run.started');
    running.child.kill('SIGTERM');
    await run.until('run.started');
    // The first one has closed the door: the second comes while the service waits for the run.
    for (let refused = false; !refused; )
      refused = (await folder.acp(['run', 'hello', 'hi', '--no-stream'])).code === 8;
    running.child.kill('SIGTERM');
    const { code, stdout } = await running.done;
    assert.equal(code, 143);
    const told = stdout.split('\n').filter((line) => line.includes('Stopping'));
    assert.equal(told.length, 1, stdout);
    const { level, runs, atMostMs, message } = JSON.parse(told[0] ?? '');
    assert.deepEqual([level, runs, atMostMs], ['info', 1, 60_000]);
    assert.match(message, /runs in progress .* a second signal ends at once/);
  });

  test('a port in use, an owned store and a wrong setting are told with their own codes', async (t) => {
    const folder = createFolder(t);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(async () => {
      server.close();
      await once(server, 'close');
    });
    const { port } = server.address() as AddressInfo;
    const taken = await folder.acp(['serve', '--url', `http://127.0.0.1:${port}`]);
    assert.deepEqual(taken, {
      code: 8,
      stdout: '',
      stderr: `error: Cannot listen on 127.0.0.1:${port}: another program listens there.\nhint: Choose another address with --url or the setting Host:Url.\n`,
    });

    const { url } = await folder.serve();
    const second = await folder.acp(['serve']);
    assert.equal(second.code, 8);
    assert.match(second.stderr, new RegExp(`owned by process \\d+ \\(${url}\\)`));

    const wrong = await folder.acp(['serve', '--set', 'Service:Scheduling:PollIntervall=5s', '--set', 'Host:Url=7070']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.stderr, /PollIntervall[\s\S]*Host:Url|Host:Url[\s\S]*PollIntervall/);
    folder.write('scripts/demo.yaml', 'rules: [{ reply: { txt: x } }]');
    const script = await folder.acp(['serve']);
    assert.equal(script.code, 2);
    assert.match(script.stderr, /demo\.yaml/);
  });
});

describe('quickstart', () => {
  test('--once applies the sample, shows its answer with the tool call, and ends', async (t) => {
    const folder = createFolder(t);
    const first = await folder.acp(['quickstart', '--once', '--data', 'here']);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /^> What time is it in Vienna\?$/m);
    assert.match(
      first.stdout,
      /^→ clock_now \{"timeZone":"Europe\/Vienna"\}\n✓ clock_now .*\[Europe\/Vienna\]\nIt is .*\[Europe\/Vienna\]\./m,
    );
    assert.match(
      first.stdout,
      /\nPut a real key: .*\nApply your agent: .*\nOpen the docs: .*acp serve, then \/docs of the address that it prints\n$/,
      'the service of --once is gone by then',
    );
    assert.ok(existsSync(join(folder.path, 'here', 'acp.db')));
    const again = await folder.acp(['quickstart', '--once', '--data', 'here']);
    assert.equal(again.code, 0);
    assert.match(again.stderr, /agent hello: unchanged, version 1/);
  });

  test('serves on until a signal, beside a service on the usual port', async (t) => {
    const folder = createFolder(t);
    const running = folder.start(['quickstart']);
    assert.match(await running.until('/docs\n'), /\nOpen the docs: +http:\/\/127\.0\.0\.1:\d+\/docs\n$/);
    await running.until('Serving until Ctrl-C', 'stderr');
    const second = createFolder(t);
    assert.equal((await second.acp(['quickstart', '--once'])).code, 0);
    // Its own service.yaml has the same provider; a folder of a quickstart has none.
    rmSync(join(second.path, 'service.yaml'));
    const after = await second.acp(['run', 'hello', 'hi']);
    assert.equal(after.code, 2);
    assert.match(after.stderr, /The model provider "demo" is not registered/);
    assert.match(
      after.stderr,
      /hint: `acp quickstart` registers the provider "demo" .* only while it runs: .*`acp init`/,
    );
    running.child.kill('SIGINT');
    assert.equal((await running.done).code, 0);
    assert.equal((await second.acp(['quickstart', '--port', '99999'])).code, 2);
  });
});

describe('init, doctor, config, db and openapi', () => {
  test('init writes files that a service starts with, and overwrites nothing', async (t) => {
    const folder = createFolder(t);
    const { code, stdout } = await folder.acp(['init', 'mine']);
    assert.equal(code, 0);
    assert.match(stdout, /^wrote {2}mine\/service\.yaml\nwrote {2}mine\/agents\/hello\.yaml\n/);
    const config = ['--config', 'mine/service.yaml'];
    const doctor = await folder.acp(['doctor', ...config]);
    assert.equal(doctor.code, 0, doctor.stdout);
    assert.match(doctor.stdout, /^ok {4}provider {4}demo \(scripted\): .*mine\/scripts\/demo\.yaml$/m);
    assert.match(doctor.stdout, /^ok {4}tools {7}clock_now$/m);
    assert.ok(!existsSync(join(folder.path, 'mine', 'data')), 'doctor makes nothing');
    assert.equal((await folder.acp(['agents', 'apply', '-f', 'mine/agents', ...config])).code, 0);
    const again = await folder.acp(['init', 'mine']);
    assert.equal(again.code, 2);
    assert.match(again.stderr, /exist already; nothing was written/);
  });

  test('doctor tells every failure and ends with 1', async (t) => {
    const folder = createFolder(t);
    folder.write('modules/clock.mjs', 'throw new Error("nope")');
    const broken = await folder.acp(['doctor', '--json']);
    assert.equal(broken.code, 1);
    const findings = JSON.parse(broken.stdout) as { status: string; check: string; message: string }[];
    assert.deepEqual(
      findings.filter(({ status }) => status === 'fail').map(({ check }) => check),
      ['service'],
    );
    const keyless = await folder.acp([
      'doctor',
      '--set',
      'Host:Modules=[]',
      '--set',
      'Service:Providers:OpenAI:Timeout=30s',
    ]);
    assert.equal(keyless.code, 0);
    assert.match(keyless.stdout, /^warn {2}provider {4}openai .*has no ApiKey/m);
    const wrong = await folder.acp(['doctor', '--set', 'Host:Nonsense=1']);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^fail {2}config/m);
  });

  test('config shows sources and no secret', async (t) => {
    const folder = createFolder(t);
    const { code, stdout } = await folder.acp(['config'], { env: { Host__AuthToken: 'very-secret-token' } });
    assert.equal(code, 0);
    assert.match(stdout, /^Host:AuthToken +"\*\*\*" +\(/m);
    assert.ok(!stdout.includes('very-secret-token'));
    assert.equal((await folder.acp(['config', '--set', 'Host:Url=x'])).code, 2);
    assert.match((await folder.acp(['config', '--example'])).stdout, /Persistence:/);
  });

  test('db shows, checks and copies the store, also while it is served', async (t) => {
    const folder = createFolder(t);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    await folder.serve();
    const status = JSON.parse((await folder.acp(['db', 'status', '--json'])).stdout) as Record<string, unknown>;
    assert.equal((status['rows'] as Record<string, number>)['agents'], 1);
    assert.match((await folder.acp(['db', 'check'])).stdout, /is sound/);
    const copy = await folder.acp(['db', 'backup', 'copy.db']);
    assert.deepEqual([copy.code, existsSync(join(folder.path, 'copy.db'))], [0, true]);
    assert.equal((await folder.acp(['db', 'backup', 'copy.db'])).code, 2);
    assert.equal((await folder.acp(['db', 'backup', 'copy.db', '--force'])).code, 0);
    assert.equal((await folder.acp(['db', 'migrate'])).code, 8);
    const fromCopy = ['--set', 'Service:Persistence:Sqlite:ConnectionString=copy.db'];
    assert.deepEqual((await folder.acp(['db', 'migrate', ...fromCopy])).stdout, 'The store is up to date.\n');
    assert.match((await folder.acp(['agents', 'list', ...fromCopy])).stdout, /^hello /m);
  });

  test('openapi prints the description without a service', async (t) => {
    const folder = createFolder(t);
    const { stdout } = await folder.acp(['openapi', '--prefix', '/acp']);
    const document = JSON.parse(stdout) as { openapi: string };
    assert.equal(document.openapi, '3.1.0');
    assert.match((await folder.acp(['openapi', '--yaml'])).stdout, /^openapi: 3\.1\.0$/m);
    const pathsOf = async (...args: string[]) => {
      const { code, stderr, stdout: text } = await folder.acp(['openapi', ...args]);
      assert.equal(code, 0, stderr);
      const { paths, servers } = JSON.parse(text) as { paths: object; servers: readonly { url: string }[] };
      return { paths: Object.keys(paths), servers };
    };
    // With a configuration it is the description of that service; with none that of the whole API.
    const config = folder.write(
      'own.yaml',
      'Host: { Prefix: /acp, OpenAi: { Enabled: false }, A2A: { Agents: [hello], Path: /partners } }',
    );
    const own = await pathsOf('--config', config);
    assert.deepEqual(own.servers, [{ url: '/acp' }]);
    for (const path of ['/api/diagnostics', '/mcp', '/a2a/{agent}', '/v1/models', '/v1/traces'])
      assert.ok(!own.paths.includes(path), path);
    assert.ok(own.paths.includes('/partners/{agent}'));
    rmSync(join(folder.path, 'service.yaml'));
    const all = (await pathsOf()).paths;
    for (const path of ['/api/diagnostics', '/mcp', '/a2a/{agent}', '/v1/models']) assert.ok(all.includes(path), path);
    // A setting of the command line is a configuration as well.
    const withSetting = async (setting: string) => (await pathsOf('--set', setting)).paths;
    assert.ok((await withSetting('Host:EnableDiagnosticsEndpoint=true')).includes('/api/diagnostics'));
    assert.ok(!(await withSetting('Host:OpenAi:Enabled=false')).includes('/v1/models'));
  });
});
