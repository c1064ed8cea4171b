import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFolder } from './support.ts';

test('runs trace names a run by its agent and a call by its model, by the names of the service', async (t) => {
  const folder = createFolder(t);
  folder.write('helper.yaml', 'name: helper\nmodel: { provider: demo, model: demo-1 }\n');
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'helper.yaml'])).code, 0);
  const all = ['--set', 'Service:Observability:SuccessSampleRatio=1'];
  assert.equal((await folder.acp(['run', 'helper', 'Hi', ...all])).code, 0);
  const [run] = JSON.parse((await folder.acp(['runs', 'list', '--json'])).stdout) as { id: string }[];
  const { stdout } = await folder.acp(['runs', 'trace', run?.id ?? '']);
  const [, root, call] = stdout.split('\n');
  assert.match(root ?? '', /^run {2}helper {2}/);
  assert.match(call ?? '', /^└─ model\.call {2}demo-1 {2}/);
});
