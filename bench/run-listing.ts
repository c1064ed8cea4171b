import { join } from 'node:path';
import Database from 'better-sqlite3';
import { migrations } from '../migrations/index.ts';
import { newId } from '../src/core/ids.ts';
import { migrate } from '../src/db/migrate.ts';
import { createSqliteDialect } from '../src/db/sqlite/dialect.ts';
import { createStorage } from '../src/db/storage.ts';
import { listRuns, type RunFilter } from '../src/features/runs/run-list.store.ts';
import { quantile } from './statistics.ts';

/** How long the store needs for one page of the run list. */
export interface Listing {
  readonly filter: string;
  readonly rows: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const tenant = 'default';
const firstRunAt = Date.UTC(2026, 0, 1);
const msBetweenRuns = 1000;
const repeats = 60;
const agents = 200;
const users = 5000;
const sessions = 50_000;

/** A store with `count` runs: two in three are children, one in 50 failed, one in 10 has a label that few others have. */
const seed = (file: string, count: number): { readonly ids: readonly string[]; readonly lastStart: number } => {
  const db = new Database(file);
  db.pragma('synchronous = OFF');
  const run = db.prepare(
    `insert into service_runs (id, tenant_id, agent_name, kind, status, session_id, user_id, owner_id, labels, parent_run_id,
       root_run_id, error_type, created_at, started_at, completed_at, is_streaming, depth)
     values (?, '${tenant}', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`,
  );
  const label = db.prepare(
    `insert into service_run_labels (tenant_id, key, value, run_id) values ('${tenant}', ?, ?, ?)`,
  );
  const ids: string[] = [];
  let at = firstRunAt;
  let root = '';
  db.transaction(() => {
    for (let index = 0; index < count; index += 1) {
      at += msBetweenRuns;
      const id = newId(at);
      const isChild = index % 3 !== 0;
      if (!isChild) root = id;
      const failed = index % 50 === 7;
      const labels = index % 10 === 3 ? { team: `team-${index % 997}` } : null;
      run.run(
        id,
        `agent-${index % agents}`,
        index % 10_000 === 9 ? 'Eval' : 'Agent',
        failed ? 'Failed' : index % 100_000 === 99_999 ? 'AwaitingApproval' : 'Completed',
        isChild ? null : `session-${index % sessions}`,
        `user-${index % users}`,
        `user-${index % users}`,
        labels === null ? null : JSON.stringify(labels),
        isChild ? root : null,
        isChild ? root : null,
        failed ? 'provider_error' : null,
        at,
        // One in a thousand waited for an hour.
        index % 1000 === 0 ? at + 3_600_000 : at,
        at + 2500,
        isChild ? 1 : 0,
      );
      if (labels !== null) label.run('team', labels.team, id);
      if (index % 1000 === 0) ids.push(root);
    }
  })();
  db.close();
  return { ids, lastStart: at };
};

/** Times a page of 50 for each single filter; the store is opened as the service opens it. */
export const measureRunListing = async (folder: string, count: number): Promise<Listing[]> => {
  const file = join(folder, 'run-list.db');
  const storage = createStorage(
    createSqliteDialect({ path: file, tablePrefix: 'service_', synchronous: 'Normal', busyTimeoutMs: 1000 }),
    true,
  );
  await migrate(storage, migrations, Date.now);
  const { ids, lastStart } = seed(file, count);
  const middle = ids[ids.length >> 1] ?? '';
  const filters: Record<string, Partial<RunFilter>> = {
    none: {},
    'includeChildren=true': { includeChildren: true },
    'agentName, many runs': { agentName: 'agent-7' },
    'agentName and includeChildren': { agentName: 'agent-7', includeChildren: true },
    'agentName, unknown': { agentName: 'nobody' },
    'status=Failed': { status: 'Failed' },
    'status=AwaitingApproval': { status: 'AwaitingApproval' },
    'kind=Agent': { kind: 'Agent' },
    'kind=Eval': { kind: 'Eval' },
    'kind=Workflow, none': { kind: 'Workflow' },
    sessionId: { sessionId: 'session-3' },
    errorType: { errorType: 'provider_error' },
    'errorType, none': { errorType: 'budget_exceeded' },
    userId: { userId: 'user-42' },
    'owner of the runs': { ownerId: 'user-42' },
    'owner of the runs, none': { ownerId: 'nobody' },
    'owner and agentName': { ownerId: 'user-42', agentName: 'agent-42' },
    'label key:value': { label: 'team:team-5' },
    'label key': { label: 'team' },
    'label, none': { label: 'nothing:here' },
    'startedAfter, the last minute': { startedAfterMs: lastStart - 60_000 },
    'startedAfter, the middle': { startedAfterMs: firstRunAt + (count / 2) * msBetweenRuns },
    'startedAfter, the future': { startedAfterMs: lastStart + 7_200_000 },
    parentRunId: { parentRunId: middle },
    rootRunId: { rootRunId: middle },
  };
  const listings: Listing[] = [];
  for (const [name, filter] of Object.entries(filters)) {
    const times: number[] = [];
    let rows = 0;
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      const start = performance.now();
      rows = (await listRuns(storage, tenant, { includeChildren: false, ownerId: null, skip: 0, take: 50, ...filter }))
        .length;
      times.push(performance.now() - start);
    }
    times.sort((a, b) => a - b);
    listings.push({ filter: name, rows, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99) });
  }
  await storage.close();
  return listings;
};
