import assert from 'node:assert/strict';
import { CompiledQuery } from 'kysely';
import type { RootStorage } from '../../src/db/storage.ts';
import { jobStore } from '../../src/features/jobs/index.ts';
import { deliveryStore } from '../../src/features/webhooks/webhook-deliveries.store.ts';
import { forEachDurableStore, openTestStorage } from '../support/store.ts';
import { watchQueries } from './watched-queries.ts';

// Above what a list of jobs goes over by itself, and enough that each server would rather use an index.
const many = 6000;
/** The oldest of them, which a list that begins with the newest meets last. */
const rare = 30;

const idAt = (number: number): string => `01900000-0000-7000-8000-${String(number).padStart(12, '0')}`;

const fill = async <R>(
  make: (number: number) => R,
  insert: (rows: readonly R[]) => Promise<unknown>,
): Promise<void> => {
  for (let first = 0; first < many; first += 500)
    await insert(Array.from({ length: 500 }, (_, index) => make(first + index)));
};

const delivery = (number: number) => ({
  ...{ id: idAt(number), webhook_id: 'w', tenant_id: 't', event_type: 'run.completed', payload: 'x'.repeat(200) },
  ...{ status: number < rare ? 'Failed' : 'Delivered', error: null, response_code: 204, next_attempt_at: null },
  ...{ attempt: 1, attempts_before: 0, created_at: number, delivered_at: number < rare ? null : number },
});

const job = (number: number) => ({
  ...{ id: idAt(number), tenant_id: 't', handler_key: 'k', lane: number < rare ? 'slow' : 'default', target_name: 'a' },
  ...{ status: number < rare ? 'Failed' : 'Completed', payload: 'x'.repeat(200), attempt: 1, max_attempts: 1 },
  ...{ schedule_id: number < rare ? 's' : null, occurrence_at: number < rare ? number : null, rank: 0, line: '' },
  ...{ scheduled_for: number, created_at: number, completed_at: number },
});

interface Node {
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Actual Rows'?: number;
  readonly 'Actual Loops'?: number;
  readonly Plans?: readonly Node[];
}

/** Rows that the server met for it. */
const metBy = (node: Node): number => {
  const { 'Actual Rows': kept = 0, 'Rows Removed by Filter': left = 0, 'Actual Loops': loops = 1, Plans = [] } = node;
  return Math.max((kept + left) * loops, ...Plans.map(metBy));
};

/** Fails where the database goes over more than it has to: on SQLite by its plan, on PostgreSQL by what it met. */
const assertFound = async (storage: RootStorage, { sql, parameters }: CompiledQuery, what: string): Promise<void> => {
  const explain = storage.dialect.name === 'sqlite' ? 'explain query plan' : 'explain (analyze, format json)';
  const { rows } = await storage.db.executeQuery<Record<string, unknown>>(
    CompiledQuery.raw(`${explain} ${sql}`, [...parameters]),
  );
  const [plan] = rows;
  if (plan !== undefined && 'QUERY PLAN' in plan) {
    const [{ Plan }] = plan['QUERY PLAN'] as [{ Plan: Node }];
    assert.ok(metBy(Plan) <= 250, `${what}: ${JSON.stringify(Plan)}`);
  } else {
    const steps = rows.map(({ detail }) => String(detail));
    assert.ok(!steps.some((step) => /_newest|\bSCAN\b/.test(step)), `${what}: ${steps.join('; ')}`);
  }
};

forEachDurableStore('JOB-20 WEBHOOK-35 what few have is found, and not looked for among all', async (t, store) => {
  const storage = await openTestStorage(t, store);
  await fill(delivery, (rows) => storage.db.insertInto('webhook_deliveries').values(rows).execute());
  await fill(job, (rows) =>
    storage.db
      .insertInto('jobs')
      .values(rows as never)
      .execute(),
  );
  if (storage.dialect.name === 'postgres') await storage.db.executeQuery(CompiledQuery.raw('analyze', []));
  const { stores, seen, scanned } = watchQueries(storage);
  const page = { skip: 0, take: 50 };
  const deliveries = (status: 'Failed' | 'Dropped' | 'Delivered') => () =>
    stores(deliveryStore).list('w', { status, ...page });
  const jobs = (filter: object) => () => stores(jobStore).list('t', { owned: null, ...page, ...filter });
  for (const [what, ask, count] of [
    ['failed deliveries', deliveries('Failed'), rare],
    ['no deliveries', deliveries('Dropped'), 0],
    ['deliveries of the usual status', deliveries('Delivered'), 50],
    ['failed jobs', jobs({ status: 'Failed' }), rare],
    ['jobs of a schedule', jobs({ scheduleId: 's' }), rare],
    ['jobs of a schedule and a usual status', jobs({ scheduleId: 's', status: 'Completed' }), 0],
    ['jobs of no schedule that there is', jobs({ scheduleId: 'none' }), 0],
  ] as const) {
    seen.length = 0;
    assert.equal((await ask()).length, count, what);
    assert.ok(seen.length > 0, what);
    for (const query of [...seen]) await assertFound(storage, query, what);
  }
  // No index has the lane: it is asked for where nothing else waits.
  const listed = async (filter: object) => (await jobs(filter)()).length;
  assert.deepEqual([await listed({ lane: 'slow' }), scanned.length], [rare, 1]);
  assert.deepEqual([await listed({ lane: 'slow', status: 'Failed' }), await listed({}), scanned.length], [rare, 50, 1]);
});
