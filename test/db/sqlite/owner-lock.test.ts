import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { AcpError } from '../../../src/contract/errors.ts';
import { openStorage } from '../../../src/db/open-storage.ts';
import { acquireOwnership, readOwner } from '../../../src/db/sqlite/owner-lock.ts';
import { storeOptions, temporaryFolder } from '../../support/opened-store.ts';

interface OwnerProcess {
  readonly child: ChildProcess;
  readonly said: string;
}

/** Another process that tries to own the file; killed when the test ends. */
const startOwner = async (t: TestContext, file: string, url = ''): Promise<OwnerProcess> => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'owner-process.ts'), file, url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  const [data] = (await once(child.stdout as NonNullable<typeof child.stdout>, 'data')) as [Buffer];
  return { child, said: data.toString().trim() };
};

const kill = async (child: ChildProcess): Promise<void> => {
  child.kill('SIGKILL');
  await once(child, 'close');
};

const refusal = async (file: string): Promise<string> => {
  try {
    (await acquireOwnership(file, { waitMs: 0 })).release();
    return 'acquired';
  } catch (error) {
    assert.ok(error instanceof AcpError);
    assert.equal(error.code, 'store-unavailable');
    return error.message;
  }
};

test('one process owns a store; the refusal names it and its URL', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { child, said } = await startOwner(t, file, 'http://127.0.0.1:7070');
  assert.equal(said, 'owned');
  assert.equal(
    await refusal(file),
    `The store ${file} is owned by process ${child.pid} (http://127.0.0.1:7070); stop it, or use its URL.`,
  );
  const owner = await readOwner(file);
  assert.deepEqual([owner?.pid, owner?.url], [child.pid, 'http://127.0.0.1:7070']);
  assert.ok(Date.parse(owner?.startedAt ?? '') > 0);
  const third = await startOwner(t, file);
  assert.match(third.said, new RegExp(`owned by process ${child.pid} `));
});

test('an owner that was killed leaves nothing in the way', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  for (let round = 0; round < 3; round += 1) {
    const { child, said } = await startOwner(t, file, 'http://127.0.0.1:7070');
    assert.equal(said, 'owned');
    await kill(child);
    assert.equal(await readOwner(file), null);
  }
  assert.equal(await refusal(file), 'acquired');
});

test('an owner that lets go is followed by the one that waits', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { child } = await startOwner(t, file);
  const waiting = acquireOwnership(file, { waitMs: 30_000 });
  child.stdin?.write('go\n');
  const lock = await waiting;
  assert.equal((await readOwner(file))?.pid, process.pid);
  lock.release();
  assert.equal(await readOwner(file), null);
});

test('a service waits for a command as long as that lives, and for no other service', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { child } = await startOwner(t, file);
  const told: number[] = [];
  const waiting = acquireOwnership(file, { waitMs: 0, onCommand: (pid) => told.push(pid) });
  let settled = false;
  waiting.finally(() => (settled = true)).catch(() => undefined);
  // Longer than anything else is waited for.
  await pause(400);
  assert.deepEqual([settled, told], [false, [child.pid]]);
  child.stdin?.write('go\n');
  (await waiting).release();

  const leaving = new AbortController();
  const another = await startOwner(t, file);
  const givenUp = acquireOwnership(file, { waitMs: 0, onCommand: () => leaving.abort(), signal: leaving.signal });
  await assert.rejects(givenUp, { name: 'AbortError' });
  await kill(another.child);

  const service = await startOwner(t, file, 'http://127.0.0.1:7070');
  const refused = acquireOwnership(file, { waitMs: 0, onCommand: (pid) => told.push(pid) });
  await assert.rejects(refused, /owned by process \d+ \(http:\/\/127\.0\.0\.1:7070\)/);
  // A command does not wait for it either: it is asked.
  await assert.rejects(acquireOwnership(file, { waitMs: 60_000, yieldsToService: true }), /owned by process/);
  await kill(service.child);
  assert.equal(told.length, 1);
});

test('a start waits out a process that only asks, and asking makes no file', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'acp.db');
  assert.equal(await readOwner(file), null);
  assert.deepEqual(readdirSync(folder), []);
  const first = await acquireOwnership(file, { waitMs: 0 });
  first.release();
  const asking = Array.from({ length: 20 }, () => readOwner(file));
  const second = await acquireOwnership(file, { waitMs: 0 });
  await Promise.all(asking);
  second.release();
});

test('within one process a store has one owner, too', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const lock = await acquireOwnership(file, { waitMs: 0 });
  assert.match(await refusal(file), new RegExp(`owned by process ${process.pid};`));
  assert.equal((await readOwner(file))?.url, null);
  lock.announce('http://127.0.0.1:1');
  assert.equal((await readOwner(file))?.url, 'http://127.0.0.1:1');
  lock.release();
  lock.release();
  lock.announce('http://127.0.0.1:2');
  assert.equal(existsSync(`${file}.owner`), false);
  assert.equal(await refusal(file), 'acquired');
});

test('a symbolic link to the file or its folder is the same store', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'real'));
  symlinkSync(join(folder, 'real'), join(folder, 'linked'));
  symlinkSync(join(folder, 'real', 'acp.db'), join(folder, 'alias.db'));
  const file = join(folder, 'real', 'acp.db');
  const names = [file, join(folder, 'linked', 'acp.db'), join(folder, 'alias.db')];
  // First while the file is missing, so that a link points to nothing, then with it.
  for (const exists of [false, true]) {
    if (exists) writeFileSync(file, '');
    for (const held of names) {
      const lock = await acquireOwnership(held, { waitMs: 0 });
      for (const name of names) assert.equal((await readOwner(name))?.pid, process.pid, name);
      lock.release();
    }
  }
  assert.deepEqual(readdirSync(folder).sort(), ['alias.db', 'linked', 'real']);
});

test('only this user can read who owns the store', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const lock = await acquireOwnership(file, { waitMs: 0 });
  t.after(() => lock.release());
  assert.equal(statSync(`${file}.owner`).mode & 0o777, 0o600);
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(`${file}.owner`, 'utf8'))), [
    'pid',
    'url',
    'startedAt',
    'readOnly',
  ]);
});

test('an owner file that says nonsense does not hide that there is an owner', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const lock = await acquireOwnership(file, { waitMs: 0 });
  t.after(() => lock.release());
  writeFileSync(`${file}.owner`, '{"pid":');
  assert.deepEqual(await readOwner(file), { pid: null, url: null, startedAt: null, readOnly: false });
  assert.match(await refusal(file), /owned by another process;/);
});

test('two servers on one file: the second is refused before it touches the store', async (t) => {
  const file = join(temporaryFolder(t), 'acp.db');
  const { child } = await startOwner(t, file, 'http://127.0.0.1:7070');
  await assert.rejects(openStorage(storeOptions(file)), new RegExp(`owned by process ${child.pid} `));
  assert.equal(existsSync(file), false);
  await kill(child);
  const opened = await openStorage(storeOptions(file));
  await opened.close();
});
