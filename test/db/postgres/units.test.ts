import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineStore } from '../../../src/db/define-store.ts';
import { insertAgent } from '../rows.ts';
import { openOnServer, skip } from './opened.ts';

const counter = defineStore((storage) => ({
  read: async (): Promise<number> =>
    (await storage.db.selectFrom('agents').select('current_version').where('name', '=', 'a').executeTakeFirstOrThrow())
      .current_version,
  write: async (version: number): Promise<void> => {
    await storage.db.updateTable('agents').set({ current_version: version }).where('name', '=', 'a').execute();
  },
}));

test('a unit that decides by what it has read loses nothing to others, and is done again', { skip }, async (t) => {
  const { storage, again } = await openOnServer(t);
  const other = await again();
  await storage.batch.write([insertAgent(storage.db, 'a')]);
  let attempts = 0;
  const rise = (process: typeof storage) =>
    process.transaction(async (stores) => {
      attempts += 1;
      await stores(counter).write((await stores(counter).read()) + 1);
    }, 'one line');
  await Promise.all(Array.from({ length: 10 }, (_, index) => rise(index % 2 === 0 ? storage : other.storage)));
  assert.equal(await storage.stores(counter).read(), 11);
  assert.ok(attempts >= 10);
});

test('a part does not pass over a conflict: the whole unit is done again', { skip }, async (t) => {
  const { storage, again } = await openOnServer(t);
  const other = await again();
  await storage.batch.write([insertAgent(storage.db, 'a')]);
  let attempts = 0;
  await storage.transaction(async (stores) => {
    attempts += 1;
    const before = await stores(counter).read();
    if (attempts === 1)
      await other.storage.dialect.commitUnits([
        [{ sql: `update "service"."agents" set "current_version" = 50`, parameters: [] }],
      ]);
    await stores.part(() => stores(counter).write(before + 1)).catch(() => undefined);
  });
  assert.equal(attempts, 2);
  assert.equal(await storage.stores(counter).read(), 51);
});
