import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkServer, serverFacts } from '../../../src/db/postgres/server-facts.ts';
import { createDatabase, withPostgres } from '../../support/postgres-server.ts';
import { openOnServer, skip } from './opened.ts';

// The configuration admits plain names alone; one that SQL has a meaning for is plain, too. Nothing here depends on that.
for (const schema of ['user', 'Acp-Prod "x"', "it's.a $1"])
  test(`a store works in a schema that is called ${schema}`, { skip }, async (t) => {
    const { storage: plain } = await openOnServer(t);
    const { url, drop } = await createDatabase();
    t.after(drop);
    const postgres = { connectionString: url, directConnectionString: null, schema, maxConnections: 8 };
    const { storage } = await openOnServer(t, { postgres });
    const { db, dialect, batch } = storage;
    assert.equal(await dialect.describeSchema(db), await plain.dialect.describeSchema(plain.db));
    assert.equal((await dialect.size()).totalBytes, (await plain.dialect.size()).totalBytes);

    const facts = await serverFacts(db, schema);
    const plainFacts = await serverFacts(plain.db, 'service');
    assert.deepEqual([facts.partitions, facts.tableBytes], [plainFacts.partitions, plainFacts.tableBytes]);
    assert.ok((facts.partitions['run_events'] ?? 0) > 0);
    await withPostgres(url, (client) =>
      client.query(`update pg_index set indisvalid = false where indexrelid =
        (select oid from pg_class where relname = 'jobs_newest')`),
    );
    assert.match((await checkServer(db, schema)).findings.join(), /jobs_newest is not valid/);

    const { partitions } = dialect;
    assert.ok(partitions !== undefined);
    const later = Date.now() + 100 * 86_400_000;
    await partitions.prepare(later);
    assert.deepEqual(partitions.missing(), []);
    assert.ok((await partitions.dropEmpty(later)).includes('run_events_earlier'));

    const mark = (target: string) =>
      db.insertInto('retention_marks').values({ tenant_id: 't', target, swept_until: 1 }).compile();
    await batch.write([mark('one'), mark('two')]);
    assert.equal(await dialect.deleteChunk('retention_marks', 'target', { column: 'swept_until', below: 2 }, 1), 1);
    const left = await db.selectFrom('retention_marks').select('target').execute();
    assert.deepEqual(left, [{ target: 'two' }]);
  });
