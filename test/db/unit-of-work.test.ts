import assert from 'node:assert/strict';
import { defineStore } from '../../src/db/define-store.ts';
import { ConditionFailedError } from '../../src/db/statement.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import { forEachStore, openTestStorage } from '../support/store.ts';

const labels = defineStore((storage) => ({
  add: (slug: string) =>
    storage.db.insertInto('tenants').values({ id: slug, slug, display_name: slug, created_at: 0 }).execute(),
  rename: (slug: string, name: string) =>
    storage.db.updateTable('tenants').set({ display_name: name }).where('slug', '=', slug).returning('slug').execute(),
  all: async () =>
    (await storage.scan(storage.db.selectFrom('tenants').select('slug').orderBy('slug'))).map(({ slug }) => slug),
  addTwo: (one: string, two: string) =>
    storage.atomic(async (db) => {
      for (const slug of [one, two])
        await db.insertInto('tenants').values({ id: slug, slug, display_name: slug, created_at: 0 }).execute();
    }),
  removed: (slug: string) => ({
    ...storage.db.deleteFrom('tenants').where('slug', '=', slug).compile(),
    mustChange: true,
  }),
}));

const left = (storage: RootStorage) => storage.stores(labels).all();

forEachStore('what the stores of a transaction write stands together, or nothing of it', async (t, store) => {
  const storage = await openTestStorage(t, store);
  await assert.rejects(
    storage.transaction(async (stores) => {
      await stores(labels).add('one');
      assert.deepEqual(await stores(labels).all(), ['one'], 'a store sees what its transaction wrote');
      throw new Error('no');
    }),
    /no/,
  );
  assert.deepEqual(await left(storage), []);
  await storage.transaction(async (stores) => {
    await stores(labels).add('one');
    await stores(labels).addTwo('two', 'three');
  });
  assert.deepEqual(await left(storage), ['one', 'three', 'two']);
});

forEachStore('several steps of a store are all or nothing also without a transaction', async (t, store) => {
  const storage = await openTestStorage(t, store);
  await storage.stores(labels).add('one');
  await assert.rejects(storage.stores(labels).addTwo('two', 'one'));
  assert.deepEqual(await left(storage), ['one']);
});

forEachStore('a compiled write that has to change a row fails its transaction', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const both = ['one', 'gone'].map(storage.stores(labels).removed);
  await storage.stores(labels).add('one');
  await assert.rejects(
    storage.transaction((stores) => stores.write(both)),
    ConditionFailedError,
  );
  assert.deepEqual(await left(storage), ['one']);
  await storage.transaction((stores) => stores.write(both.slice(0, 1)));
  assert.deepEqual(await left(storage), []);
});

forEachStore('a transaction knows whether it has written a row', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const changes = (work: Parameters<typeof storage.transaction>[0]): Promise<boolean> =>
    storage.transaction(async (stores) => {
      await work(stores);
      return stores.hasChanged();
    });
  assert.equal(await changes((stores) => stores(labels).all()), false);
  assert.equal(await changes((stores) => stores(labels).rename('gone', 'x')), false);
  assert.equal(await changes((stores) => stores(labels).add('one')), true);
  assert.equal(await changes((stores) => stores(labels).rename('one', 'x')), true, 'also where it gives rows back');
  const statement = storage.stores(labels).removed('one');
  assert.equal(await changes((stores) => stores.write([statement])), true);
  assert.equal(await changes((stores) => stores.write([{ ...statement, mustChange: false }])), false);
});

forEachStore('a part that throws is undone alone', async (t, store) => {
  const storage = await openTestStorage(t, store);
  await storage.transaction(async (stores) => {
    await stores(labels).add('one');
    const part = stores.part(async () => {
      await stores(labels).add('two');
      await stores(labels).add('one');
    });
    await assert.rejects(part);
    await stores.part(() => stores(labels).add('three'));
  });
  assert.deepEqual(await left(storage), ['one', 'three']);
});

forEachStore('a store of the open database throws inside a transaction', async (t, store) => {
  const storage = await openTestStorage(t, store);
  const root = storage.stores(labels);
  for (const use of [() => root.add('one'), () => root.all(), () => root.addTwo('one', 'two')])
    await assert.rejects(
      storage.transaction(async () => use()),
      /root store handle was used inside a transaction/,
    );
});
