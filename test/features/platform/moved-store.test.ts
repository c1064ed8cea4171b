import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { overHttp, type TestApp } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';

const agents = [{ name: 'helper' }];

/** The files of the store of an app, found by their names. */
const storeOf = ({ folder }: TestApp): string => {
  const candidates = [folder, join(folder, 'data')].filter((path) => existsSync(path));
  for (const path of candidates) {
    const name = readdirSync(path).find((file) => file.endsWith('.db'));
    if (name !== undefined) return join(path, name);
  }
  return assert.fail('there is no store');
};

const readiness = async ({ url }: TestApp): Promise<readonly [number, unknown]> => {
  const answer = await fetch(`${url}/health/ready`);
  return [answer.status, ((await answer.json()) as { status: unknown }).status];
};

const told = ({ log }: TestApp, words: RegExp) => log.filter(({ message }) => words.test(message));

const gone = /^A file of the store was moved, deleted or replaced/;

const refusesWrites = async (app: TestApp): Promise<void> => {
  assert.deepEqual(await readiness(app), [503, 'Unhealthy']);
  const body = { name: 'another', model: { provider: 'demo', model: 'demo-1' } };
  const problem = await refusal(app.client.agents.create({ body }));
  assert.deepEqual([problem.status, problem.code], [503, 'store-unavailable']);
  assert.match(problem.detail, /moved, deleted or replaced/);
  assert.doesNotMatch(problem.detail, /\.db/);
  assert.ok((problem.retryAfterMs ?? 0) > 0);
  // What is open can still be read.
  assert.equal((await app.client.agents.list({})).body.length, 1);
  await readiness(app);
  assert.equal(told(app, gone).length, 1, 'once');
};

for (const [what, suffix] of [
  ['the store file', ''],
  ['its log', '-wal'],
] as const)
  overHttp(`OBS-31 ${what} is moved away: nothing is written until it is back`, async (open) => {
    const app = await open({ agents });
    await runJson(app.client, 'helper', 'Hi');
    const path = storeOf(app) + suffix;
    renameSync(path, `${path}.away`);
    await refusesWrites(app);
    assert.equal(told(app, gone)[0]?.fields['path'], path);
    renameSync(`${path}.away`, path);
    assert.deepEqual(await readiness(app), [200, 'Healthy']);
    assert.equal((await runJson(app.client, 'helper', 'Hi')).warnings, undefined);
    assert.equal(told(app, /^The files of the store are where they were/).length, 1);
    assert.equal((await app.client.runs.list({})).body.length, 2);
  });

overHttp('OBS-31 another file in its place is never taken up, nor is it touched', async (open) => {
  const app = await open({ agents });
  const path = storeOf(app);
  rmSync(path);
  writeFileSync(path, 'something else');
  await refusesWrites(app);
  await app.close();
  assert.equal(told(app, gone).length, 1);
});

overHttp('OBS-31 the folder of the store is replaced by an empty one', async (open) => {
  const app = await open({ agents });
  const folder = join(storeOf(app), '..');
  renameSync(folder, `${folder}.away`);
  mkdirSync(folder);
  await refusesWrites(app);
  assert.deepEqual(readdirSync(folder), []);
  rmSync(folder, { recursive: true });
  renameSync(`${folder}.away`, folder);
  assert.deepEqual(await readiness(app), [200, 'Healthy']);
});
