import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import type { JobDetailResponse, JobRecord } from '../../../src/features/jobs/jobs.schema.ts';
import type { WebhookDelivery } from '../../../src/features/webhooks/webhooks.schema.ts';
import { everyPage, everyRun, unfinishedRuns } from '../../e2e/records.ts';
import type { ServiceProcess } from '../../e2e/support.ts';
import { call } from '../../e2e/wire.ts';
import { startServer } from '../../providers/http/loopback-server.ts';
import { eventually } from '../../support/eventually.ts';
import { type Fleet, openFleet } from '../../support/fleet.ts';
import { startEffectsServer } from '../effects-server.ts';
import { seeded, service } from '../soak.ts';
import { type Arrivals, type RecordedItem, type RecordedRequest, type Violation, violationsOf } from './checker.ts';
import { applyLoad, type Load, prepare, secret, stopSchedules } from './load.ts';

export interface ArrivalOptions {
  readonly seconds: number;
  readonly seed: number;
  /** Of each batch. */
  readonly items: number;
  /** Batches that are worked on at a time. */
  readonly loaders: number;
  readonly tell?: (line: string) => void;
}

export interface ArrivalReport {
  readonly arrivals: Arrivals;
  readonly kills: number;
  /** Requests of the senders of triggers, repeats included. */
  readonly requests: number;
  readonly errors: readonly string[];
  readonly violations: readonly Violation[];
}

const minuteMs = 60_000;
/** A busy machine is slow to start processes again: as many die there, only later. */
const leastKills = 3;
const drainMs = 600_000;
const script = [
  {
    when: { message: '/^do (?<name>[\\w-]+)$/', call: 1 },
    reply: { toolCalls: [{ name: 'destructive', arguments: { name: '{{name}}' } }] },
  },
  { reply: { text: 'Done.' } },
];

/** Somebody outside who hears of ends: mostly glad of it, at times not, late or not at all. */
const startReceiver = async (random: () => number) => {
  const requests: RecordedRequest[] = [];
  const webhook = new Webhook(secret);
  const server = await startServer(({ url, headers, body }, response) => {
    let isVerified = true;
    try {
      webhook.verify(body, headers as Record<string, string>);
    } catch {
      isVerified = false;
    }
    requests.push({ subscription: url.slice(1), id: String(headers['webhook-id']), body, isVerified });
    const mood = random();
    if (mood < 0.05) response.writeHead(503).end();
    else if (mood < 0.08) response.destroy();
    else if (mood < 0.2) setTimeout(() => response.end(), 50);
    else response.end();
  });
  return { requests, url: server.url, close: () => server.close() };
};

/** When this process, and with it the machine, was not there for longer than a turn of the dispatch takes. */
const watchMachine = () => {
  const standstills: { from: number; to: number }[] = [];
  let seen = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - seen > 10_000) standstills.push({ from: seen, to: now });
    seen = now;
  }, 1000);
  return { standstills, stop: () => clearInterval(timer) };
};

/** Kills one of the processes and starts it again, until the time is over, some have died and a minute has begun meanwhile. */
const killAtRandom = async (
  fleet: Fleet,
  { seconds, tell = () => undefined }: ArrivalOptions,
  random: () => number,
) => {
  const begun = Date.now();
  let kills = 0;
  const isEnough = (): boolean => {
    const now = Date.now();
    const seen = Math.floor(now / minuteMs) > Math.floor(begun / minuteMs);
    // Not while what is due is about to be seen.
    const isOver = now - begun > seconds * 1000 && kills >= leastKills;
    return isOver && seen && now % minuteMs > 10_000 && now % minuteMs < 50_000;
  };
  while (!isEnough()) {
    await pause(3000 + 7000 * random());
    const member = fleet.members[Math.trunc(random() * fleet.members.length)];
    if (member === undefined) throw new Error('Nobody serves.');
    tell(`kill -9 of ${member.pid}`);
    await fleet.end(member, 'kill');
    kills += 1;
    await fleet.join();
  }
  return kills;
};

const isQuiet = async (served: ServiceProcess): Promise<boolean> => {
  await pause(500);
  for (const status of ['Pending', 'Leased', 'Running']) {
    const answer = await call(`${served.url}/api/jobs?status=${status}&take=1`);
    if (answer.status !== 200 || answer.json<unknown[]>().length > 0) return false;
  }
  return (await unfinishedRuns(served)).length === 0;
};

const readItems = async (served: ServiceProcess, jobs: readonly JobRecord[]): Promise<RecordedItem[]> => {
  const items: RecordedItem[] = [];
  for (const { id } of jobs) {
    const shown = (await call(`${served.url}/api/jobs/${id}`)).json<JobDetailResponse>();
    for (const { input, status, error } of shown.items)
      items.push({ jobId: id, name: String(input).slice('do '.length), status, error });
  }
  return items;
};

/** What the service has of it when all is done. */
const readStored = async (served: ServiceProcess) => {
  const jobs = await everyPage<JobRecord>(served, '/api/jobs', { handlerKey: 'acp.agent-batch' });
  const deliveriesOf = async (name: string) =>
    (await everyPage<WebhookDelivery>(served, `/api/webhooks/${name}/deliveries`)).map(({ id, status }) => ({
      ...{ subscription: name, id, status },
    }));
  return {
    jobs: jobs.map(({ id, scheduleId, scheduledFor, createdAt, status }) => ({
      ...{ id, scheduleId, status },
      at: Date.parse(createdAt ?? scheduledFor),
    })),
    items: await readItems(served, jobs),
    runs: (await everyRun(served)).map(({ id, status, error, agentName, continuedFromRunId }) => ({
      ...{ id, status },
      error: error?.message ?? null,
      ofTrigger: agentName === 'clerk' && continuedFromRunId === null,
    })),
    deliveries: [...(await deliveriesOf('runs')), ...(await deliveriesOf('jobs'))],
  };
};

const settings = (seed: number) => ({
  ...service,
  AsyncRun: { MaxAttempts: 20 },
  // As short as can be: nobody takes a job over before.
  Scheduling: { MaxConcurrentJobs: 8, PollInterval: '1s', LeaseDuration: '10s', MaxAttempts: 200 },
  // Both look for what is due, or one does in turn.
  SingletonExecution: { Enabled: seed % 2 === 1, LeaseDuration: '6s' },
  Triggers: { PermitLimit: 1_000_000 },
  TriggerSecrets: { crm: secret },
  Webhooks: {
    AllowInsecureHttp: true,
    DisableAfterConsecutiveFailures: 1_000_000,
    RetryDelays: ['200ms', '200ms', '500ms', ...Array.from({ length: 17 }, () => '1s')],
  },
  WebhookSecrets: { crm: secret },
});

/** Two processes on one database, killed at random while work arrives in every way there is; then what does not agree. */
export const arrive = async (options: ArrivalOptions): Promise<ArrivalReport> => {
  const { seed, items, loaders, tell = () => undefined } = options;
  const world = await startEffectsServer();
  const receiver = await startReceiver(seeded(seed + 2));
  const folder = mkdtempSync(join(tmpdir(), 'acp-arrivals-'));
  world.writeTools(folder);
  const machine = watchMachine();
  const closeWorld = async (): Promise<void> => {
    machine.stop();
    world.close();
    await receiver.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const setup = { processes: 2, script, service: settings(seed), host: { Tools: [folder] } };
  const fleet = await openFleet(setup).catch(async (error: unknown) => {
    await closeWorld();
    throw error;
  });
  try {
    const schedules = await prepare(fleet.url, receiver.url);
    let over = false;
    const load: Load = {
      ...{ url: fleet.url, items, isOver: () => over, random: seeded(seed + 1) },
      ...{ calls: new Map(), acknowledgedJobs: [], requests: 0 },
    };
    // Ends the load also when it fails.
    const killing = killAtRandom(fleet, options, seeded(seed)).finally(() => {
      over = true;
    });
    const [kills] = await Promise.all([killing, applyLoad(load, loaders)]);
    const until = await stopSchedules(fleet.url);
    tell('the load is over');
    const [served] = fleet.members;
    if (served === undefined) throw new Error('Nobody serves.');
    await eventually('the end of all runs, jobs and deliveries', () => isQuiet(served), drainMs);
    const arrivals: Arrivals = {
      schedules: schedules.map((schedule) => ({ ...schedule, until })),
      standstills: machine.standstills,
      acknowledgedJobs: load.acknowledgedJobs,
      executions: new Map([...world.hits].map(([name, count]) => [name.slice(name.indexOf('/') + 1), count])),
      callKeys: world.keys,
      calls: load.calls,
      ...(await readStored(served)),
      requests: receiver.requests,
    };
    const errors = fleet.members.flatMap((member) =>
      member
        .log()
        .flatMap(({ level, message, error }) => (level === 'error' ? [`${message}: ${JSON.stringify(error)}`] : [])),
    );
    return { arrivals, kills, requests: load.requests, errors, violations: violationsOf(arrivals) };
  } finally {
    await fleet.close();
    await closeWorld();
  }
};
