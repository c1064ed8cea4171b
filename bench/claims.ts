import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { applyLoad, type Call } from './load.ts';
import type { Server } from './servers.ts';
import { median } from './statistics.ts';

/** What workers do while an old transaction is held open, which keeps the server from clearing away what they left. */
export interface Claims {
  readonly jobsPerSecond: number;
  readonly heldJobsPerSecond: number;
  /** Jobs that came and went while it was held. */
  readonly passed: number;
  /** For how long jobs at that rate would have had to come. */
  readonly heldSeconds: number;
}

const atOnce = 16;
const jobs = 160;
const heldSeconds = 600;
const warmUpRounds = 6;
const lookMs = 5;

/** A run that is put in line. */
export const queuedCall = (server: Server): Call => ({
  url: server.url,
  path: '/api/agents/plain/run',
  body: JSON.stringify({ message: 'Name twenty words that come to mind when you think of a river.' }),
  headers: 'prefer: respond-async\r\n',
  status: 202,
  firstToken: '"runId"',
  complete: '"runId"',
});

/**
 * A job of the service, over and over: due, taken, under way, done. What each leaves in the table and its indexes is what a
 * worker would have left; all in one transaction, since nobody is to take them.
 */
const passing = (count: number): string =>
  [
    `insert into service.jobs select (json_populate_record(one.job, json_build_object('id', 'passed-' || number, 'status', 'Pending'))).*
      from (select job from service.jobs as job limit 1) as one, generate_series(1, ${count}) as number`,
    ...['Leased', 'Running', 'Completed'].map(
      (status) => `update service.jobs set status = '${status}' where id like 'passed-%'`,
    ),
  ].join(';\n');

/** `worker` takes the jobs of the database at `url`. */
export const measureClaims = async (worker: Server, url: string, rounds: number): Promise<Claims> => {
  const connected = async (): Promise<Client> => {
    const client = new Client({ connectionString: url });
    await client.connect();
    return client;
  };
  const watcher = await connected();
  const isDone = async (): Promise<boolean> => {
    const { rows } = await watcher.query(
      `select 1 from service.jobs where status in ('Pending', 'Leased', 'Running') limit 1`,
    );
    return rows.length === 0;
  };
  const rate = async (): Promise<number> => {
    const startedAt = performance.now();
    await applyLoad(queuedCall(worker), { concurrency: atOnce, seconds: 60, runs: jobs });
    while (!(await isDone())) await delay(lookMs);
    return (jobs * 1000) / (performance.now() - startedAt);
  };
  const rates = async (count: number): Promise<number> => {
    const all: number[] = [];
    for (let round = 0; round < count; round += 1) all.push(await rate());
    return median(all);
  };
  await rates(warmUpRounds);
  const jobsPerSecond = await rates(rounds);
  const holder = await connected();
  await holder.query('begin isolation level repeatable read');
  await holder.query('select count(*) from service.jobs');
  const passed = Math.ceil(jobsPerSecond * heldSeconds);
  await watcher.query(passing(passed));
  const heldJobsPerSecond = await rates(rounds);
  await Promise.all([holder.end(), watcher.end()]);
  return { jobsPerSecond, heldJobsPerSecond, passed, heldSeconds };
};
