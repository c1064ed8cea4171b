import assert from 'node:assert/strict';
import process from 'node:process';
import { test } from 'node:test';
import { agentNames, insertAgent } from '../rows.ts';
import { openOnServer, skip } from './opened.ts';

test('ACP_REPEAT_UNITS has each unit of work lose its first attempt, and nothing of that is stored', {
  skip,
}, async (t) => {
  const before = process.env['ACP_REPEAT_UNITS'];
  process.env['ACP_REPEAT_UNITS'] = '1';
  const opened = await openOnServer(t).finally(() => {
    if (before === undefined) delete process.env['ACP_REPEAT_UNITS'];
    else process.env['ACP_REPEAT_UNITS'] = before;
  });
  const { storage } = opened;
  let attempts = 0;
  const add = (name: string) =>
    storage.atomic(async (db) => {
      attempts += 1;
      await storage.dialect.write(db, [insertAgent(db, `${name}-${attempts}`)]);
    });
  await add('one');
  assert.deepEqual([attempts, await agentNames(storage.db)], [2, ['one-2']]);
});
