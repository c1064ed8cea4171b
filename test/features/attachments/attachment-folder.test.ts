import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { overHttp, type TestApp } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { fileOf, readAll } from './files.ts';

const folderOf = (app: TestApp): string => join(app.folder, 'data', 'acp.db-attachments');

const upload = async ({ client }: TestApp, content: string): Promise<string> =>
  (await client.attachments.upload({ query: {}, file: fileOf(content, 'a.txt') })).body.id;
const download = ({ client }: TestApp, id: string) => client.attachments.download({ params: { id } });
const remove = ({ client }: TestApp, id: string) => client.attachments.remove({ params: { id } });

const readiness = async ({ url }: TestApp): Promise<readonly [number, unknown]> => {
  const answer = await fetch(`${url}/health/ready`);
  return [answer.status, ((await answer.json()) as { status: unknown }).status];
};

const told = ({ log }: TestApp, words: RegExp) => log.filter(({ message }) => words.test(message));
const gone = /^The folder of the attachments was moved, deleted or replaced/;

const refusedAsGone = async (work: Promise<unknown>): Promise<void> => {
  const problem = await refusal(work);
  assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
  assert.match(problem.detail, /folder of the attachments was moved, deleted or replaced/);
  assert.doesNotMatch(problem.detail, /acp\.db/);
};

/** The file of a content, wherever its tenant's folder is. */
const fileWith = (folder: string, content: string): string => {
  const hash = createHash('sha256').update(content).digest('hex');
  const found = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith(hash));
  return join(folder, found ?? assert.fail('the content has no file'));
};

for (const [what, replace] of [
  ['is gone', () => undefined],
  ['is replaced by an empty one', (folder: string) => mkdirSync(folder)],
] as const)
  overHttp(`ATT-6 OBS-31 a folder of attachments that ${what} is not made anew`, async (open) => {
    const app = await open({ agents: [{ name: 'helper' }] });
    const folder = folderOf(app);
    assert.ok(!existsSync(folder));
    // Never there before: it is made on first use.
    const id = await upload(app, 'first');
    const other = await upload(app, 'second');
    renameSync(folder, `${folder}.away`);
    replace(folder);
    const left = () => (existsSync(folder) ? readdirSync(folder) : null);
    const found = left();
    await refusedAsGone(upload(app, 'third'));
    // Its bytes would stay behind, though the answer said that it was deleted.
    await refusedAsGone(remove(app, id));
    assert.deepEqual(await readiness(app), [200, 'Degraded']);
    assert.deepEqual(left(), found);
    const problem = await refusal(download(app, id));
    assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
    assert.match(problem.detail, /bytes of the attachment are missing/);
    const failed = await refusal(runJson(app.client, 'helper', { message: 'Look.', attachmentIds: [id] }));
    assert.deepEqual([failed.status, failed.code], [503, 'store-unavailable']);
    // What needs no contents goes on.
    assert.equal((await runJson(app.client, 'helper', 'Hi')).status, 'Completed');
    assert.equal(told(app, gone).length, 1, 'once');
    assert.equal(told(app, gone)[0]?.fields['path'], folder);

    rmSync(folder, { recursive: true, force: true });
    renameSync(`${folder}.away`, folder);
    assert.deepEqual(await readiness(app), [200, 'Healthy']);
    assert.equal(told(app, /^The folder of the attachments is where it was/).length, 1);
    assert.equal((await readAll((await download(app, id)).bytes)).toString(), 'first');
    assert.equal((await remove(app, other)).status, 204);
    assert.ok(await upload(app, 'third'));
  });

overHttp('ATT-6 OBS-31 nothing is made below a folder of the store that is gone as a whole', async (open) => {
  const app = await open();
  const folder = join(app.folder, 'data');
  renameSync(folder, `${folder}.away`);
  const problem = await refusal(upload(app, 'first'));
  assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
  assert.ok(!existsSync(folder));
  renameSync(`${folder}.away`, folder);
  assert.ok(await upload(app, 'first'));
});

overHttp(
  'ATT-13 bytes that are missing or cut off are a problem with a line in the log, not half an answer',
  async (open) => {
    const app = await open();
    const [missing, short] = [await upload(app, 'all of it'), await upload(app, 'some of it')];
    rmSync(fileWith(folderOf(app), 'all of it'));
    truncateSync(fileWith(folderOf(app), 'some of it'), 4);
    for (const [id, words] of [
      [missing, /There is no file/],
      [short, /The length of .* is another/],
    ] as const) {
      const problem = await refusal(download(app, id));
      assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
      const lines = app.log.filter(({ fields: { error } }) => error instanceof Error && words.test(error.message));
      assert.equal(lines.length, 1);
      assert.equal(lines[0]?.level, 'error');
    }
    // The folder itself takes what is written.
    assert.deepEqual(await readiness(app), [200, 'Healthy']);
  },
);
