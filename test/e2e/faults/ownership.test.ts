import assert from 'node:assert/strict';
import { chmodSync, chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Finished, openSite, type ServiceProcess, type Site } from '../support.ts';
import { call, openStream } from '../wire.ts';

const model = { provider: 'demo', model: 'm' };
const script = [{ when: { message: 'hang' }, reply: { text: 'So far.', stall: true } }, { reply: { text: 'Done.' } }];

/** The failed call says why in one line of its own words: no stack trace, no driver's text. */
const assertRefused = ({ code, stdout, stderr }: Finished, expectedCode: number, ...words: readonly RegExp[]): void => {
  assert.equal(code, expectedCode, stderr);
  assert.equal(stdout, '');
  for (const word of words) assert.match(stderr, word);
  assert.doesNotMatch(stderr, /^\s+at |SQLITE_|node:internal/m);
};

describe('one owner of a store', () => {
  let site: Site;
  let owner: ServiceProcess;

  before(async () => {
    site = openSite({ script });
    owner = await site.serve();
    const created = await call(`${owner.url}/api/agents`, { body: { name: 'helper', model } });
    assert.equal(created.status, 201, created.text);
  });

  after(() => site.close());

  test('a second server on the file is refused and told who serves it', async () => {
    const second = await site.acp(['serve']);
    assertRefused(second, 8, new RegExp(`process ${owner.pid}\\b`), new RegExp(owner.url.replaceAll('.', '\\.')));
    assert.equal((await call(`${owner.url}/health/ready`)).status, 200);
  });

  test('a command goes to the live owner: it reaches a run that only the owner can stop', async () => {
    const stream = await openStream(`${owner.url}/api/agents/helper/run`, { body: { message: 'hang' } });
    await stream.first('message.delta');
    const canceled = await site.acp(['runs', 'cancel', stream.runId, '--json']);
    assert.equal(canceled.code, 0, canceled.stderr);
    assert.equal(await stream.ended, 'end');
    assert.equal(stream.frames.at(-1)?.event, 'run.canceled');
  });

  test('the same command works in process when nobody serves, also after the owner was killed', async () => {
    const served = await site.acp(['agents', 'list', '--json']);
    assert.equal(served.code, 0, served.stderr);
    await owner.kill();
    assert.equal(existsSync(`${site.storePath}.owner`), true);
    const alone = await site.acp(['agents', 'list', '--json']);
    assert.deepEqual(alone, served);
    const run = await site.acp(['run', 'helper', 'hello', '--json']);
    assert.equal(run.code, 0, run.stderr);
    await site.checkStore();
    owner = await site.serve();
    const runs = (await call(`${owner.url}/api/runs?take=1`)).json<{ agentName: string; status: string }[]>();
    assert.deepEqual(
      runs.map(({ agentName, status }) => [agentName, status]),
      [['helper', 'Completed']],
    );
  });

  test('of two servers that start together one serves, and the other one is told', async () => {
    const other = openSite();
    try {
      const starts = await Promise.allSettled([other.serve(), other.serve()]);
      const refused = starts.find((start) => start.status === 'rejected');
      assert.match(String(refused?.reason), /ended with 8: .*is owned by process \d+/s);
      const started = starts.find((start) => start.status === 'fulfilled');
      assert.equal((await started?.value.stop())?.code, 0);
    } finally {
      await other.close();
    }
  });

  test('a port in use is named, and the store is free again', async () => {
    const other = openSite();
    try {
      const { host, port } = new URL(owner.url);
      assertRefused(await other.acp(['serve', '--url', `http://${host}`]), 8, new RegExp(port), /another program/);
      assert.equal(existsSync(`${other.storePath}.owner`), false);
      const started = await other.serve();
      assert.equal((await call(`${started.url}/health/ready`)).status, 200);
      assert.equal((await started.stop()).code, 0);
    } finally {
      await other.close();
    }
  });
});

describe('a configuration that cannot be served', () => {
  let site: Site;

  before(() => {
    site = openSite();
  });

  after(() => site.close());

  test('CONF-14 all problems are reported together, and nothing is opened', async () => {
    const wrong = ['Host:LogLevel=loud', 'Service:Drain:Timeout=soon', 'Service:Scheduling:MaxConcurrentJobs=0'];
    const refused = await site.acp(['serve', ...wrong.flatMap((entry) => ['--set', entry])]);
    assertRefused(refused, 2, /3 problems/, ...wrong.map((entry) => new RegExp(entry.slice(0, entry.indexOf('=')))));
    assert.equal(existsSync(site.storePath), false);
  });

  test('SEC-7 SEC-8 remote access needs a credential: with a key in the store the same start is fine', async () => {
    const open = ['--set', 'Host:AllowRemoteAccess=true'];
    assertRefused(await site.acp(['serve', ...open]), 2, /Host:AllowRemoteAccess/, /an active API key/);
    const made = await site.acp(['keys', 'create', 'remote', '--scope', 'AgentsRead', '--json']);
    assert.equal(made.code, 0, made.stderr);
    const service = await site.serve({ args: open });
    assert.equal((await call(`${service.url}/api/agents`)).status, 401);
    const { plaintextKey } = JSON.parse(made.stdout) as { plaintextKey: string };
    assert.equal((await call(`${service.url}/api/agents`, { headers: { 'x-api-key': plaintextKey } })).status, 200);
    assert.equal((await service.stop()).code, 0);
  });
});

describe('a store that cannot be opened', () => {
  const nobody = 65_534;
  const isRoot = process.getuid?.() === 0;
  let site: Site;
  let user: { readonly uid?: number };

  before(() => {
    site = openSite();
    user = isRoot ? { uid: nobody } : {};
    if (!isRoot) return;
    for (const path of [site.folder, join(site.folder, 'home')]) chownSync(path, nobody, nobody);
  });

  after(() => site.close());

  test('a data folder that may not be written to', async (t) => {
    // Permissions do not bind the superuser, and another user may not be allowed to read the program.
    const tried = await site.acp(['--version'], user).catch((error: NodeJS.ErrnoException) => {
      // Node itself lies in a folder that the other user may not enter.
      if (error.code === 'EACCES') return null;
      throw error;
    });
    if (tried?.code !== 0) return t.skip('another user cannot run the program in this folder');
    const folder = join(site.folder, 'closed');
    mkdirSync(folder);
    if (isRoot) chownSync(folder, nobody, nobody);
    chmodSync(folder, 0o555);
    try {
      const args = ['serve', '--set', `Service:Persistence:Sqlite:ConnectionString=${join(folder, 'acp.db')}`];
      assertRefused(await site.acp(args, user), 8, /closed/, /may not write/);
    } finally {
      chmodSync(folder, 0o755);
    }
  });

  test('a file that is no store stays as it is', async () => {
    mkdirSync(dirname(site.storePath), { recursive: true });
    writeFileSync(site.storePath, 'Not a database, but somebody needs it.\n'.repeat(100));
    assertRefused(await site.acp(['serve']), 8, /acp\.db/, /not an SQLite database/);
    assertRefused(await site.acp(['agents', 'list']), 8, /not an SQLite database/);
  });

  test('a folder where the file should be, and a file where the folder should be', async () => {
    mkdirSync(join(site.folder, 'folder.db'));
    writeFileSync(join(site.folder, 'plain'), '');
    for (const path of ['folder.db', 'plain/acp.db'])
      assertRefused(
        await site.acp(['serve', '--set', `Service:Persistence:Sqlite:ConnectionString=${join(site.folder, path)}`]),
        8,
        /cannot be opened/,
      );
  });
});
