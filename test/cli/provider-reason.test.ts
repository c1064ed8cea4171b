import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startRawServer } from '../support/providers/raw-server.ts';
import { createFolder } from './support.ts';

test('a refused call says what the provider called it, and where the rest stands', async (t) => {
  await using server = await startRawServer((response) => {
    const error = {
      message: 'host-17.example says no',
      type: 'invalid_request_error',
      code: 'unsupported_value',
      param: null,
    };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
  });
  const folder = createFolder(t);
  folder.write('strict.yaml', 'name: strict\nmodel: { provider: strict, model: m-1 }\n');
  const set = ['--set', `Service:Providers:Compatible:strict:Endpoint=${server.url}/v1`];
  assert.equal((await folder.acp(['agents', 'apply', '-f', 'strict.yaml', ...set])).code, 0);
  const reason =
    /provider: code unsupported_value, type invalid_request_error \(the log has the rest under request [0-9a-f-]{36}\)/;
  const streamed = await folder.acp(['run', 'strict', 'Hi', ...set]);
  assert.notEqual(streamed.code, 0);
  assert.match(streamed.stdout + streamed.stderr, reason);
  const json = await folder.acp(['run', 'strict', 'Hi', '--json', ...set]);
  assert.match(json.stdout + json.stderr, /"provider":\s*\{\s*"code":\s*"unsupported_value"/);
  const [run] = JSON.parse((await folder.acp(['runs', 'list', '--json', ...set])).stdout) as { id: string }[];
  const tailed = await folder.acp(['runs', 'tail', run?.id ?? '', ...set]);
  assert.match(tailed.stdout + tailed.stderr, reason);
});
