import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { everyRun, unfinishedRuns } from '../records.ts';
import { openSite } from '../support.ts';
import { put, storm, usedBy, verified } from './quota-storm.ts';

const maxRuns = 160;
const tokensOfOne = 30;
const maxTokens = 60 * tokensOfOne;

const usage = { inputTokens: 20, outputTokens: 10 };
// Long enough that a kill always finds runs in the middle.
const script = [{ reply: { text: 'One two three four.', chunkSize: 5, delay: '150ms', usage } }];

const site = openSite({ script });
after(() => site.close());

const agents = ['runs', 'tokens'] as const;

test('QUOTA-12 QUOTA-13 64 clients and kill -9 in between: no run and no token over, and counters are the sum of the rows', async () => {
  let service = await site.serve();
  for (const name of agents)
    await put(service, '/api/agents', 'POST', { name, model: { provider: 'demo', model: 'm' } });
  await put(service, '/api/quotas', 'PUT', { agentName: 'runs', period: 'Daily', maxRuns });
  await put(service, '/api/quotas', 'PUT', { agentName: 'tokens', period: 'Monthly', maxTokens });
  for (const enough of [20, 30]) {
    await storm(service, agents, enough);
    service = await site.serve();
    assert.equal(await verified(service), true);
    // What was in progress is closed: no reservation is left of it.
    assert.deepEqual(await unfinishedRuns(service), []);
    assert.ok((await usedBy(service, 'runs', 'Daily')).runs <= maxRuns);
    assert.ok((await usedBy(service, 'tokens', 'Daily')).tokens <= maxTokens);
  }
  const codes = await storm(service, agents, Number.POSITIVE_INFINITY);
  assert.deepEqual([...new Set(codes)], ['quota-exceeded']);
  assert.equal((await usedBy(service, 'runs', 'Daily')).runs, maxRuns);
  assert.equal((await usedBy(service, 'tokens', 'Daily')).tokens, maxTokens);
  assert.equal((await everyRun(service, { agentName: 'runs' })).length, maxRuns);
  assert.ok((await everyRun(service, { errorType: 'orphaned' })).length > 0, 'the kills hit runs in progress');
  await service.stop();
  assert.equal((await site.acp(['quotas', 'verify'])).code, 0);
});
