import assert from 'node:assert/strict';
import { randomBytes, randomInt } from 'node:crypto';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { everyAttachment } from '../records.ts';
import { openSite, type ServiceProcess, type Site, until } from '../support.ts';
import { call } from '../wire.ts';

const boundary = 'b0und';

const formOf = (content: string): string =>
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n${content}\r\n--${boundary}--\r\n`;

/** Id of what was stored. Rejects when the connection breaks before the answer. */
const upload = async (service: ServiceProcess, content: string): Promise<string> => {
  const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
  const answer = await call(`${service.url}/api/attachments`, { method: 'POST', body: formOf(content), headers });
  assert.equal(answer.status, 201, answer.text);
  return answer.json<{ id: string }>().id;
};

const remove = async (service: ServiceProcess, id: string): Promise<void> => {
  const answer = await call(`${service.url}/api/attachments/${id}`, { method: 'DELETE' });
  assert.equal(answer.status, 204, answer.text);
};

const filesBelow = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => entry.name)
    : [];

/** Texts of any size, some of them equal to others, so that uploads and deletes meet at the same bytes. */
const someText = (round: number): string =>
  randomInt(2) === 0
    ? `shared ${randomInt(3)}`
    : `${round} `.repeat(randomInt(1, 20_000)) + randomBytes(8).toString('hex');

interface Known {
  /** Answered with 201, and no delete of it was ever sent. */
  readonly kept: Map<string, string>;
  /** Answered with 204. */
  readonly gone: Set<string>;
  /** Answers until now. */
  answers: number;
}

/** Uploads and deletes until the connection breaks. */
const work = async (service: ServiceProcess, round: number, known: Known): Promise<void> => {
  try {
    for (;;) {
      const content = someText(round);
      const id = await upload(service, content);
      known.kept.set(id, content);
      known.answers += 1;
      if (randomInt(3) === 0) continue;
      const [first = id] = known.kept.keys();
      const chosen = randomInt(2) === 0 ? id : first;
      // From here on it may be there or not.
      if (!known.kept.delete(chosen)) continue;
      await remove(service, chosen);
      known.gone.add(chosen);
      known.answers += 1;
    }
  } catch (error) {
    assert.ok(!(error instanceof assert.AssertionError), error as Error);
  }
};

const check = async (site: Site): Promise<{ findings: string[]; notes: string[] }> =>
  JSON.parse((await site.acp(['db', 'check', '--json'])).stdout) as { findings: string[]; notes: string[] };

test('ATT-6 ATT-16 kill -9 at any point of uploads and deletes: nothing named is missing, no orphan survives a start', async (t) => {
  const site = openSite();
  t.after(() => site.close());
  const folder = `${site.storePath}-attachments`;
  const known: Known = { kept: new Map(), gone: new Set(), answers: 0 };
  for (let round = 0; round < 4; round += 1) {
    const service = await site.serve();
    for (const [id, content] of known.kept) {
      const answer = await call(`${service.url}/api/attachments/${id}`);
      assert.deepEqual([answer.status, answer.text === content], [200, true]);
    }
    for (const id of known.gone) assert.equal((await call(`${service.url}/api/attachments/${id}`)).status, 404);
    // The bytes that the last process left behind go in the background, what it was receiving went before.
    const named = new Set((await everyAttachment(service)).map(({ sha256 }) => sha256));
    await until('the end of what nothing names', () => filesBelow(folder).length <= named.size);
    assert.deepEqual(filesBelow(folder).sort(), [...named].sort());
    const target = known.answers + randomInt(5, 60);
    const workers = Array.from({ length: 4 }, () => work(service, round, known));
    await until('more answers', () => known.answers >= target);
    await service.kill();
    await Promise.all(workers);
    // What was acknowledged is whole, whatever else the end left behind.
    assert.deepEqual((await check(site)).findings, []);
  }
  assert.ok(known.kept.size > 0 && known.gone.size > 0);
});

test('a backup that is made during uploads and deletes is whole, and restoring is copying both back', async (t) => {
  const site = openSite();
  t.after(() => site.close());
  let service = await site.serve();
  // Nobody deletes these.
  const lasting = new Map<string, string>();
  for (const content of ['shared 0', 'own', 'x'.repeat(100_000)]) lasting.set(await upload(service, content), content);
  const known: Known = { kept: new Map(), gone: new Set(), answers: 0 };
  const workers = Array.from({ length: 2 }, () => work(service, 0, known));
  await until('more answers', () => known.answers >= 20);
  const copy = join(site.folder, 'backups', 'copy.db');
  for (const args of [[], ['--force']]) {
    const made = await site.acp(['db', 'backup', copy, ...args]);
    assert.equal(made.code, 0, made.stdout + made.stderr);
    assert.match(made.stdout, /copy\.db {2}\d+ bytes\n.*copy\.db-attachments {2}\d+ files, \d+ bytes\n$/);
  }
  await service.stop();
  await Promise.all(workers);

  for (const path of [
    site.storePath,
    `${site.storePath}-wal`,
    `${site.storePath}-shm`,
    `${site.storePath}-attachments`,
  ])
    rmSync(path, { recursive: true, force: true });
  cpSync(copy, site.storePath);
  cpSync(`${copy}-attachments`, `${site.storePath}-attachments`, { recursive: true });
  assert.deepEqual(await check(site), { path: site.storePath, findings: [], notes: [] });
  service = await site.serve();
  for (const [id, content] of lasting) assert.equal((await call(`${service.url}/api/attachments/${id}`)).text, content);
  assert.equal((await service.stop()).code, 0);
});
