import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nearestName } from '../../src/core/nearest-name.ts';

test('a wrong name gets the known one that it is a typo of, in its spelling, and a different one gets none', () => {
  const known = ['url', 'events', 'secretConfigurationKey', 'targetName'];
  const cases = {
    ulr: 'url',
    targetname: 'targetName',
    event: 'events',
    SECRETCONFIGURATIONKEY: 'secretConfigurationKey',
  };
  for (const [name, nearest] of Object.entries(cases)) assert.equal(nearestName(name, known), nearest, name);
  for (const name of ['id', 'retries', '', 'x'.repeat(100_000)]) assert.equal(nearestName(name, known), null);
  assert.equal(nearestName('url', []), null);
});
