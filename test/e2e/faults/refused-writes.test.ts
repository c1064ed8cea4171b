import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { type Answer, call } from '../wire.ts';
import { mountDisk, mountFailingDisk } from './refusing-disk.ts';

const model = { provider: 'demo', model: 'm' };
const script = [{ when: { message: 'pause' }, reply: { text: 'Late.', stall: '500ms' } }, { reply: { text: 'Done.' } }];
const boundary = 'b0und';

const upload = (url: string, content: string): Promise<Answer> =>
  call(`${url}/api/attachments`, {
    method: 'POST',
    body: `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${content}\r\n--${boundary}--\r\n`,
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
  });
const run = (url: string, message: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> =>
  call(`${url}/api/agents/helper/run`, {
    body: { message, ...(headers['prefer'] === undefined ? { stream: false } : {}) },
    headers,
  });
const readiness = async (url: string) => (await call(`${url}/health/ready`)).json()['status'];
const filesBelow = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => name)
    : [];
const assertRefused = ({ status, text }: Answer): void => {
  assert.equal(status, 503, text);
  assert.match(text, /"code":"(store|audit)-unavailable"/);
  assert.doesNotMatch(text, /E[A-Z]{4,}|SQLITE|acp\.db/);
};

const disk = mountDisk(6);
const archive = mountDisk(1);
const needsMount = disk === null || archive === null ? 'this user may not mount a file system' : false;

describe('disks that are full beside a service that works', { skip: needsMount }, () => {
  let site: Site;
  let service: ServiceProcess;
  const contents = () => filesBelow(`${site.storePath}-attachments`);
  const sweeps = async () =>
    (await call(`${service.url}/api/retention/history?target=Runs`)).json<
      { completedAt: string | null; error: string | null; deletedRows: number; archivedRows: number }[]
    >();
  const runs = async () => (await call(`${service.url}/api/runs`)).json<unknown[]>().length;
  const sweep = async (before: number) => {
    const asked = await call(`${service.url}/api/retention/run?target=Runs`, { method: 'POST' });
    assert.equal(asked.status, 200, asked.text);
    await until('the end of the sweep', async () => {
      const found = await sweeps();
      return found.length > before && found[0]?.completedAt !== null;
    });
    return (await sweeps())[0];
  };

  before(async () => {
    assert.ok(disk !== null && archive !== null);
    site = openSite({
      script,
      dataFolder: join(disk.folder, 'data'),
      host: { ArchiveFolder: join(archive.folder, 'archive') },
      service: { Scheduling: { PollInterval: '1s', LeaseDuration: '10s' } },
    });
    service = await site.serve();
    const created = await call(`${service.url}/api/agents`, { body: { name: 'helper', model } });
    assert.equal(created.status, 201, created.text);
  });

  after(async () => {
    await site.close();
    disk?.remove();
    archive?.remove();
  });

  test('RET-16 nothing is deleted whose archive could not be written, and the history says so', async () => {
    for (let count = 0; count < 3; count += 1) assert.equal((await run(service.url, 'hello')).status, 200);
    const policy = { maxAgeDays: 30, maxRows: 1, archive: true };
    const saved = await call(`${service.url}/api/retention/Runs`, { method: 'PUT', body: policy });
    assert.equal(saved.status, 200, saved.text);
    archive?.fill();
    const failed = await sweep(0);
    assert.deepEqual([failed?.error, failed?.deletedRows, failed?.archivedRows], ['sink-failed', 0, 0]);
    assert.equal(await runs(), 3);
    assert.deepEqual(filesBelow(join(archive?.folder ?? '', 'archive')), []);
    assert.equal(await readiness(service.url), 'Healthy');
    archive?.free();
    const done = await sweep(1);
    assert.equal(done?.error, null);
    assert.ok((done?.archivedRows ?? 0) > 0);
    assert.equal(await runs(), 1);
  });

  test('ATT-2 AUDIT-3 on a full disk an upload and an audited change leave nothing behind, and the service goes on', async () => {
    assert.equal((await upload(service.url, 'kept')).status, 201);
    const kept = contents();
    const queued = await run(service.url, 'pause', { prefer: 'respond-async' });
    assert.equal(queued.status, 202, queued.text);
    disk?.fill();
    assertRefused(await upload(service.url, 'x'.repeat(200_000)));
    assert.deepEqual(contents(), kept);
    assert.equal(await readiness(service.url), 'Degraded');
    const entries = async () => (await call(`${service.url}/api/audit?limit=500`)).json<{ id: string }[]>();
    const written = await entries();
    assert.ok(written.length > 0);
    for (const body of [
      { name: 'another', model },
      { name: 'third', model, instructions: 'x'.repeat(20_000) },
    ])
      assertRefused(await call(`${service.url}/api/agents`, { body }));
    assertRefused(await call(`${service.url}/api/retention/run?target=Runs`, { method: 'POST' }));
    assert.deepEqual(await entries(), written);
    assert.equal((await call(`${service.url}/api/agents`)).json<unknown[]>().length, 1);
    // The end of the queued run meets the full disk, and so do two polls at least.
    await pause(2500);
    assert.ok(service.log().length < 100, 'nothing spins');
    disk?.free();
    await until('readiness that is Healthy again', async () => (await readiness(service.url)) === 'Healthy');
    const { runId } = queued.json<{ runId: string }>();
    const ended = await until('the end of the queued run', async () => {
      const { status } = (await call(`${service.url}/api/runs/${runId}`)).json<{ status: string }>();
      return status === 'Queued' || status === 'Running' ? null : status;
    });
    assert.equal(ended, 'Completed');
    assert.equal((await upload(service.url, 'more')).status, 201);
    assert.equal((await service.stop()).code, 0);
    await site.checkStore();
  });

  test('a start on a read-only file system says which path and why', async () => {
    disk?.setReadonly(true);
    const refused = await site.acp(['serve']);
    disk?.setReadonly(false);
    assert.notEqual(refused.code, 0);
    assert.ok(refused.stderr.includes(join(disk?.folder ?? '', 'data')), refused.stderr);
    assert.match(refused.stderr, /file system is read-only; make it writable, then start again/);
    service = await site.serve();
    assert.equal((await run(service.url, 'hello')).status, 200);
    assert.equal((await service.stop()).code, 0);
  });
});

const failing = mountFailingDisk(16);

describe('a file system that turns read-only while it is served', {
  skip: failing === null ? 'this user may not mount the image of a disk' : false,
}, () => {
  test('OBS-31 writes are refused, runs say so, and reads go on', async (t) => {
    assert.ok(failing !== null);
    const site = openSite({ script, dataFolder: join(failing.folder, 'data') });
    t.after(async () => {
      await site.close();
      failing.remove();
    });
    const service = await site.serve();
    assert.equal((await call(`${service.url}/api/agents`, { body: { name: 'helper', model } })).status, 201);
    const kept = (await upload(service.url, 'kept')).json<{ id: string }>();
    failing.fail();
    assertRefused(await upload(service.url, 'lost'));
    assert.equal(await readiness(service.url), 'Degraded');
    assertRefused(await call(`${service.url}/api/agents`, { body: { name: 'another', model } }));
    assertRefused(await call(`${service.url}/api/attachments/${kept.id}`, { method: 'DELETE' }));
    const answer = await run(service.url, 'hello');
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.json()['warnings'], ['quota-not-written', 'recording-incomplete']);
    assert.equal((await call(`${service.url}/api/agents`)).json<unknown[]>().length, 1);
    assert.equal((await call(`${service.url}/api/attachments/${kept.id}`)).text, 'kept');
    for (const words of [/^The store cannot be written/, /^The folder of the attachments cannot be written/])
      assert.equal(service.log().filter(({ message }) => words.test(message)).length, 1);
    assert.equal((await service.stop()).code, 0);
  });
});
