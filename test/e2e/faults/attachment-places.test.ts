import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { environment } from '../../../src/core/environment.ts';
import { program, programEnvironment } from '../../support/program.ts';
import { type S3Server, startS3Server } from '../../support/s3-server.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call } from '../wire.ts';

const boundary = 'b0und';

const upload = async (service: ServiceProcess, content: string): Promise<string> => {
  const body = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${content}\r\n--${boundary}--\r\n`;
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
  const answer = await call(`${service.url}/api/attachments`, { method: 'POST', body, headers });
  assert.equal(answer.status, 201, answer.text);
  return answer.json<{ id: string }>().id;
};

const assertAllThere = async (service: ServiceProcess, known: ReadonlyMap<string, string>): Promise<void> => {
  for (const [id, content] of known) {
    const answer = await call(`${service.url}/api/attachments/${id}`);
    assert.deepEqual([answer.status, answer.text === content], [200, true]);
  }
};

const filesBelow = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name !== 'acp-attachments-of')
        .map((entry) => entry.name)
    : [];

const objectsOf = ({ objects }: S3Server): string[] =>
  [...objects.keys()].filter((key) => !key.includes('attachments-of'));

interface Report {
  readonly contents: number;
  readonly copied: number;
  readonly removed: number;
  readonly complete: boolean;
  readonly findings: readonly string[];
}

const move = async (site: Site, ...args: string[]): Promise<Report> => {
  const done = await site.acp(['attachments', 'move', '--json', ...args]);
  assert.equal(done.code, 0, done.stdout + done.stderr);
  return JSON.parse(done.stdout) as Report;
};

/** A process of its own, which is killed as soon as it has stored some. */
const killedMove = async (site: Site, s3: S3Server, puts: number): Promise<void> => {
  const [command, ...first] = program;
  const env = { PATH: environment()['PATH'] ?? '', HOME: join(site.folder, 'home'), ...programEnvironment };
  const child = spawn(command, [...first, 'attachments', 'move', '--to', 's3'], {
    cwd: site.folder,
    env,
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  await until('some that are stored', () => objectsOf(s3).length >= puts || child.exitCode !== null);
  child.kill('SIGKILL');
  await ended;
};

const open = async (t: TestContext) => {
  const s3 = await startS3Server(t);
  const { bucket, region, endpoint, prefix, credentials } = s3.settings;
  const key = Buffer.alloc(32, 3).toString('base64');
  const site = openSite({
    service: {
      AtRest: { ActiveKeyId: 'a', Keys: { a: key } },
      Attachments: {
        Folder: null,
        S3: {
          ...{ Bucket: bucket, Region: region, Endpoint: endpoint, Prefix: prefix },
          ...{ AccessKeyId: credentials?.accessKeyId, SecretAccessKey: credentials?.secretAccessKey },
        },
      },
    },
  });
  t.after(() => site.close());
  return { s3, site, home: `${site.storePath}-attachments` };
};

const inBucket = { args: ['--set', 'Service:Attachments:Store=S3'] };

test('ATT-6 attachments move to a bucket while the service answers, also after kill -9, and back', async (t) => {
  const { s3, site, home } = await open(t);
  let service = await site.serve();
  const known = new Map<string, string>();
  for (let count = 0; count < 12; count += 1) {
    const content = randomBytes(1 + count * 20_000).toString('hex');
    known.set(await upload(service, content), content);
  }
  await killedMove(site, s3, 4);
  assert.ok(objectsOf(s3).length >= 4);
  await assertAllThere(service, known);

  const [first = ''] = known.keys();
  assert.equal((await call(`${service.url}/api/attachments/${first}`, { method: 'DELETE' })).status, 204);
  known.delete(first);
  const moved = await move(site, '--to', 's3');
  assert.deepEqual([moved.contents, moved.complete, moved.findings], [11, true, []]);
  assert.ok(moved.copied < 12);
  await assertAllThere(service, known);
  // Nothing is copied a second time, and nothing was taken away.
  assert.deepEqual(await move(site, '--to', 's3').then(({ contents, copied }) => [contents, copied]), [11, 0]);
  assert.equal(filesBelow(home).length, 11);
  for (const bytes of s3.objects.values()) assert.ok(!bytes.includes([...known.values()].at(-1)?.slice(0, 64) ?? ''));

  // Whoever takes the files away has to mean it, and nobody may be storing any.
  const refused = await site.acp(['attachments', 'move', '--to', 's3', '--remove-source', ...inBucket.args]);
  assert.notEqual(refused.code, 0);
  assert.equal(filesBelow(home).length, 11);
  assert.equal((await service.stop()).code, 0);
  const unmeant = await site.acp(['attachments', 'move', '--to', 's3', '--remove-source']);
  assert.notEqual(unmeant.code, 0);
  assert.match(unmeant.stderr, /Service:Attachments:Store is another place/);
  assert.equal((await move(site, '--to', 's3', '--remove-source', ...inBucket.args)).removed, 11);
  assert.deepEqual(filesBelow(home), []);
  // Each call is told before it begins, those of the process that was killed and of the one that was to remove, too.
  const entries = await site.acp(['audit', 'list', '--action', 'attachments.move', '--json']);
  const told = (JSON.parse(entries.stdout) as { entity: string }[]).map(({ entity }) => entity);
  assert.deepEqual(
    told,
    Array.from({ length: 4 }, () => 'attachments:S3'),
  );
  assert.equal((await site.acp(['audit', 'verify'])).code, 0);

  service = await site.serve(inBucket);
  await assertAllThere(service, known);
  const [second = ''] = known.keys();
  assert.equal((await call(`${service.url}/api/attachments/${second}`, { method: 'DELETE' })).status, 204);
  known.delete(second);
  const content = randomBytes(50_000).toString('hex');
  known.set(await upload(service, content), content);
  assert.equal((await service.stop()).code, 0);

  for (const [to, where] of [
    ['database', 'Database'],
    ['folder', 'Folder'],
  ] as const) {
    const set = ['--set', `Service:Attachments:Store=${where}`];
    assert.equal((await move(site, '--to', to, '--remove-source', ...set)).contents, 11);
    service = await site.serve({ args: set });
    await assertAllThere(service, known);
    assert.equal((await service.stop()).code, 0);
    assert.deepEqual(JSON.parse((await site.acp(['db', 'check', '--json'])).stdout).findings, []);
  }
  // What the process that was killed was sending waits an hour.
  assert.ok(objectsOf(s3).length <= 1);
  assert.equal(filesBelow(home).length, 11);
});

test('ATT-6 a backup and a check name what lies in a bucket', async (t) => {
  const { s3, site } = await open(t);
  const service = await site.serve(inBucket);
  const id = await upload(service, 'in the bucket');
  const backup = await site.acp(['db', 'backup', join(site.folder, 'copy.db')]);
  assert.equal(backup.code, 0, backup.stderr);
  assert.match(backup.stderr, /Not copied: 1 files, \d+ bytes in S3/);
  const check = async () =>
    JSON.parse((await site.acp(['db', 'check', '--json'])).stdout) as { findings: string[]; notes: string[] };
  assert.deepEqual((await check()).findings, []);
  s3.objects.set(`${s3.settings.prefix}00000000-0000-0000-0000-000000000000`, Buffer.from('foreign'));
  assert.match(
    (await check()).notes.join(),
    /1 file in s3:\/\/bucket\/acp\/ that this store knows nothing of; they stay/,
  );
  for (const key of objectsOf(s3)) s3.objects.delete(key);
  assert.match((await check()).findings.join(), /is missing/);
  const answer = await call(`${service.url}/api/attachments/${id}`);
  assert.equal(answer.status, 503);
  assert.match(answer.text, /missing from the store/);
  assert.equal((await service.stop()).code, 0);
});

test('ATT-6 kill -9 during uploads to a bucket: nothing that was acknowledged is missing', async (t) => {
  const { site } = await open(t);
  const known = new Map<string, string>();
  for (let round = 0; round < 2; round += 1) {
    const service = await site.serve(inBucket);
    await assertAllThere(service, known);
    const target = known.size + 8;
    const work = async (): Promise<void> => {
      try {
        for (;;) {
          const content = randomBytes(30_000).toString('hex');
          known.set(await upload(service, content), content);
        }
      } catch (error) {
        assert.ok(!(error instanceof assert.AssertionError), error as Error);
      }
    };
    const workers = [work(), work(), work()];
    await until('more answers', () => known.size >= target);
    await service.kill();
    await Promise.all(workers);
  }
  const service = await site.serve(inBucket);
  await assertAllThere(service, known);
  assert.equal((await service.stop()).code, 0);
});
