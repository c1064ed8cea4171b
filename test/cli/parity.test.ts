import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Outcome } from '../support/warm-program.ts';
import { createFolder, listeningUrl } from './support.ts';

describe('in process and over HTTP', () => {
  test('commands print the same and end the same', async (t) => {
    const folder = createFolder(t);
    await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
    const { stdout } = await folder.acp(['run', 'hello', 'time', '--json']);
    const { runId } = JSON.parse(stdout) as { runId: string };
    const calls = [
      ['agents', 'list'],
      ['agents', 'get', 'hello'],
      ['agents', 'get', 'hello', '--json'],
      ['agents', 'versions', 'hello'],
      ['agents', 'get', 'nobody'],
      ['agents', 'estimate', 'hello', '--message', 'hi'],
      ['tools', 'list', '--json'],
      ['models', 'list'],
      ['keys', 'list'],
      ['runs', 'list'],
      ['runs', 'get', runId],
      ['runs', 'tree', runId],
      ['runs', 'tools', runId],
      ['runs', 'tail', runId],
      ['runs', 'tail', runId, '--json'],
      ['runs', 'cancel', runId],
      ['runs', 'list', '--status', 'asleep'],
      ['runs', 'get', 'no-uuid'],
      ['agents', 'create', '--name', 'x y'],
    ];
    const local: Outcome[] = [];
    for (const call of calls) local.push(await folder.acp(call));
    const { url } = await folder.serve();
    for (const [index, call] of calls.entries()) assert.deepEqual(await folder.acp(call), local[index], call.join(' '));
    // The address in a variable finds the same service.
    assert.deepEqual(await folder.acp(['agents', 'list'], { env: { ACP_URL: url } }), local[0]);
  });

  test('the owner of the store is found with its prefix and its token; a wrong token is refused', async (t) => {
    const folder = createFolder(t);
    const env = { Host__AuthToken: 'a-token-of-the-host' };
    const running = folder.start(['serve', '--json', '--prefix', '/acp'], { env });
    const url = await listeningUrl(running);
    assert.match(url, /\/acp$/);
    // Whoever can read the configuration may use its token.
    assert.equal((await folder.acp(['agents', 'list'], { env })).code, 0);
    const without = await folder.acp(['agents', 'list']);
    assert.equal(without.code, 3);
    assert.match(without.stderr, /hint: Give a token or an API key by the variable ACP_TOKEN/);
    assert.equal((await folder.acp(['agents', 'list'], { env: { ACP_TOKEN: 'wrong' } })).code, 3);
    assert.equal((await folder.acp(['agents', 'list'], { env: { ACP_TOKEN: 'a-token-of-the-host' } })).code, 0);
    folder.write('token', 'a-token-of-the-host\n');
    assert.equal((await folder.acp(['agents', 'list', '--url', url, '--token-file', 'token'])).code, 0);
    assert.equal((await folder.acp(['agents', 'list', '--token-file', 'nowhere'])).code, 2);

    const key = await folder.acp(['keys', 'create', 'reader', '--scope', 'agentsread', '--expires', '1d'], { env });
    assert.match(key.stdout, /^acp_default_\w+\n$/);
    assert.match(key.stderr, /^Key [0-9a-f-]{36} \(Reader; AgentsRead; until /);
    const asReader = { env: { ACP_TOKEN: key.stdout.trim() } };
    assert.equal((await folder.acp(['agents', 'list'], asReader)).code, 0);
    const refused = await folder.acp(['runs', 'list'], asReader);
    assert.equal(refused.code, 3);
    assert.match(refused.stderr, /hint: Use an API key with the scope RunsRead/);
  });
});

describe('output', () => {
  test('has no colour in a pipe, with NO_COLOR and with --no-color', async (t) => {
    const folder = createFolder(t);
    for (const [args, env] of [
      [['agents', 'get', 'nobody'], {}],
      [['agents', 'get', 'nobody', '--no-color'], {}],
      [['agents', 'get', 'nobody'], { NO_COLOR: '1' }],
    ] as const) {
      const { stdout, stderr } = await folder.acp(args, { env });
      assert.ok(!`${stdout}${stderr}`.includes('\u001b'));
    }
  });

  test('--json is the JSON of the API, also for an empty list', async (t) => {
    const folder = createFolder(t);
    const { url } = await folder.serve();
    const list = await folder.acp(['runs', 'list', '--json']);
    assert.deepEqual([list.stdout, list.stderr], ['[]\n', '']);
    assert.deepEqual(await folder.acp(['runs', 'list']), { code: 0, stdout: '', stderr: 'Nothing found.\n' });
    const meta = await folder.acp(['meta', '--json']);
    assert.deepEqual(JSON.parse(meta.stdout), await (await fetch(`${url}/api/meta`)).json());
  });
});
