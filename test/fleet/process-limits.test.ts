import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refusal } from '../features/runs/run-calls.ts';
import { openMembers, skip } from './members.ts';

test('RATE-1 permits are counted per process: two of them admit twice as much', { skip }, async (t) => {
  const service = { RateLimit: { Enabled: true, PermitLimit: 3, Window: '1d' } };
  const members = await openMembers(t, [{ service }, { service }]);
  for (const { client } of members) {
    for (let count = 0; count < 3; count += 1) await client.agents.list({});
    const problem = await refusal(client.agents.list({}));
    assert.deepEqual([problem.status, problem.code], [429, 'rate-limited']);
  }
});
