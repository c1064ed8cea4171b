import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { auditReadingStore } from '../../../src/features/audit/audit-reading.store.ts';
import { createSweepUnits } from '../../../src/features/retention/sweep-units.store.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { withPostgres } from '../../support/postgres-server.ts';
import { watchQueries } from '../watched-queries.ts';
import { openOnServer, skip } from './opened.ts';

const weekMs = 7 * 86_400_000;
const runs = 3000;

const idAt = (timeMs: number): string => {
  const hex = Math.round(timeMs).toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7${randomUUID().slice(15)}`;
};

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Loops': number;
  readonly Plans?: readonly Plan[];
}

const nodesOf = (plan: Plan): readonly Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

test('statements over tables that lie apart meet the partitions that they have to', { skip }, async (t) => {
  const { storage, url } = await openOnServer(t);
  const now = Date.now();
  const id = idAt(now + weekMs);
  // Three weeks, each with runs of two tenants and entries of their trails.
  await withPostgres(url, async (client) => {
    const ids = Array.from({ length: runs }, (_, index) => idAt(now - 2 * weekMs + (index * 3 * weekMs) / runs));
    ids.push(id);
    await client.query(
      `insert into service.runs (id, tenant_id, agent_name, kind, status, created_at, completed_at, is_streaming, depth, event_count)
       select id, case when n % 2 = 0 then 'even' else 'odd' end, 'a', 'Agent', 'Completed', 1, 1, 0, 0, 1
       from unnest($1::text[]) with ordinality as given(id, n)`,
      [ids],
    );
    for (const columns of [
      'run_events (run_id, events, first_sequence, last_sequence) select id, $2, 0, 0',
      'run_inputs (run_id, messages) select id, $2',
    ])
      await client.query(`insert into service.${columns} from unnest($1::text[]) as given(id)`, [ids, 'x'.repeat(400)]);
    await client.query(
      `insert into service.audit_entries (tenant_id, id, action, entity, created_at, hash)
       select case when n % 2 = 0 then 'even' else 'odd' end, id, 'a', 'b', 1, $2
       from unnest($1::text[]) with ordinality as given(id, n)`,
      [[...ids, ...ids.map((_, index) => idAt(now + 8 * weekMs + index))], 'x'.repeat(64)],
    );
    await client.query('analyze');
  });

  const { stores, seen } = watchQueries(storage);
  /** The plans of what a store asks, executed. */
  const plans = async (ask: () => Promise<unknown>): Promise<Plan[]> => {
    seen.length = 0;
    await ask();
    const asked = [...seen];
    return withPostgres(url, async (client) => {
      const found: Plan[] = [];
      for (const { sql, parameters } of asked) {
        const { rows } = await client.query(`explain (analyze, format json) ${sql}`, [...parameters]);
        found.push(rows[0]['QUERY PLAN'][0].Plan);
      }
      return found;
    });
  };
  const executed = (plan: Plan): readonly Plan[] => nodesOf(plan).filter((node) => node['Actual Loops'] > 0);
  const relations = (plan: Plan): string[] =>
    executed(plan).flatMap(({ 'Relation Name': name }) => (name === undefined ? [] : [name]));

  const [read] = await plans(() => stores(runStore).packs('even', id, 0, 100));
  assert.ok(read !== undefined);
  assert.equal(new Set(relations(read)).size, 1, 'a read by run');
  assert.match(relations(read)[0] ?? '', /^run_events_\d+$/);

  const filter = { actor: null, action: null, entity: null, after: null, before: null, beforeId: null, limit: 50 };
  const [list] = await plans(() => stores(auditReadingStore).list('even', filter));
  assert.ok(list !== undefined);
  const kinds = executed(list).map((node) => node['Node Type']);
  assert.ok(kinds.includes('Merge Append'), `the trail of a tenant is merged: ${kinds}`);
  assert.ok(!kinds.includes('Sort') || executed(list).every((node) => node['Node Type'] !== 'Seq Scan'), `${kinds}`);

  const units = stores(createSweepUnits(() => now));
  for (const target of ['RunEvents', 'RunInputs'] as const) {
    const [sweep] = await plans(() => units.next(target, 'even', { cutoff: 5, newestToGo: null }, null, 20));
    assert.ok(sweep !== undefined);
    const walked = executed(sweep).filter((node) => node['Node Type'] === 'Seq Scan');
    assert.deepEqual(
      walked.map((node) => node['Relation Name']),
      [],
      `a sweep of ${target}`,
    );
  }
});
