import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isIdle } from '../e2e/records.ts';
import { type ServiceProcess, until } from '../e2e/support.ts';
import { call } from '../e2e/wire.ts';
import { type Cut, type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { createDatabase } from '../support/postgres-server.ts';
import { openMeteredProvider } from '../support/providers/metered.ts';
import { findings } from './checker.ts';
import { effects, startEffectsServer } from './effects-server.ts';
import type { Life } from './lease-history.ts';
import { applyLoad, emptyHistory, type History, type Load } from './load.ts';

export interface SoakOptions {
  readonly processes: number;
  readonly seconds: number;
  readonly seed: number;
  /** How long a process that is stopped stands still at most; longer than its leases, to meet what comes after them. */
  readonly longestPauseSeconds: number;
  /** What befalls them: they themselves come and go, or their connections to the database are cut. Default: the first. */
  readonly disturbed?: 'processes' | 'connections';
  readonly tell?: (line: string) => void;
}

export interface SoakReport {
  readonly history: History;
  readonly incidents: readonly string[];
  /** Of connections to the database. */
  readonly cuts: number;
  /** What the processes have logged as an error. */
  readonly errors: readonly string[];
  readonly lives: readonly Life[];
  /** Empty: the store, the clients and the world outside agree. */
  readonly findings: readonly string[];
}

/** mulberry32, so that a sequence of incidents can be made again. */
export const seeded = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
};

export const limit = 40;
// Some seventy calls; it is chance which of both is used up first.
export const allowance = { tokens: 12_000, cost: 168_000 };
// About as long as the clients take to use up a limit: there is always one that is not.
const secondsPerLimit = 20;
const longText = Array.from({ length: 60 }, (_, index) => `word${index} `).join('');
export const script = [
  { when: { message: 'talk' }, reply: { text: longText, chunkSize: 16, delay: '10ms' } },
  { when: { message: '/turn (?<tag>t\\d+)/' }, reply: { text: 'Heard {{tag}}.', chunkSize: 4, delay: '5ms' } },
  {
    when: { message: '/order (?<order>\\w+)/', call: 1 },
    reply: {
      text: 'Going on with it.',
      toolCalls: effects.map((effect) => ({ name: effect.toLowerCase(), arguments: { name: '{{order}}' } })),
    },
  },
  { reply: { text: 'Done.' } },
];

export const service = {
  // Otherwise a run is admitted when its question was cut, and the limit is not exact.
  Quotas: { AllowOnStoreFailure: false },
  AsyncRun: { MaxAttempts: 4 },
  Scheduling: { MaxConcurrentJobs: 4, PollInterval: '1s', LeaseDuration: '10s' },
  RunReconciliation: { Enabled: true, HeartbeatInterval: '2s', OrphanThreshold: '10s' },
  RunContinuation: { Enabled: true, MaxAttempts: 2 },
  SingletonExecution: { Enabled: true, LeaseDuration: '6s' },
  Egress: { AllowPrivateNetworkTargets: true },
  Drain: { Timeout: '5s' },
};

export const prepare = async (
  { url }: Pick<ServiceProcess, 'url'>,
  { limitedAgents, pricedAgents }: Pick<Load, 'limitedAgents' | 'pricedAgents'>,
): Promise<void> => {
  const model = { provider: 'demo', model: 'm' };
  const send = async (path: string, method: string, body: object): Promise<void> => {
    const answer = await call(url + path, { method, body });
    if (answer.status >= 300) throw new Error(`${path}: ${answer.text}`);
  };
  await send('/api/agents', 'POST', { name: 'talker', model });
  await send('/api/agents', 'POST', { name: 'shop', model, toolNames: effects.map((effect) => effect.toLowerCase()) });
  for (const name of limitedAgents) {
    await send('/api/agents', 'POST', { name, model });
    await send('/api/quotas', 'PUT', { agentName: name, period: 'Daily', maxRuns: limit });
  }
  const { tokens: maxTokens, cost } = allowance;
  for (const name of pricedAgents) {
    await send('/api/agents', 'POST', { name, model: { provider: 'openai', model: 'm', maxOutputTokens: 300 } });
    await send('/api/quotas', 'PUT', { agentName: name, period: 'Daily', maxTokens, maxCost: cost / 1e6 });
  }
  // A rule is in force everywhere after five seconds.
  await pause(5000);
};

interface LifeSoFar extends Life {
  endedAt: number;
  readonly pauses: { readonly from: number; to: number }[];
}

/** Every process that serves or has served, with what was done to it. */
const watchLives = (fleet: Fleet) => {
  const lives = new Map<ServiceProcess, LifeSoFar>();
  const of = (member: ServiceProcess): LifeSoFar => {
    const watched = lives.get(member);
    if (watched !== undefined) return watched;
    const life: LifeSoFar = { pid: member.pid, log: member.log, endedAt: Number.POSITIVE_INFINITY, pauses: [] };
    lives.set(member, life);
    void member.ended.then(() => {
      life.endedAt = Math.min(life.endedAt, Date.now());
    });
    return life;
  };
  for (const member of fleet.members) of(member);
  return { of, all: (): readonly Life[] => [...lives.values()] };
};

// Fewer prove little.
const leastIncidents = 3;

/** Kills, stops and pauses one process after another until the time is over; there are always as many as in the beginning. */
const disturb = async (
  fleet: Fleet,
  lives: ReturnType<typeof watchLives>,
  { seconds, longestPauseSeconds, tell = () => undefined }: SoakOptions,
  random: () => number,
): Promise<string[]> => {
  const incidents: string[] = [];
  const until = performance.now() + seconds * 1000;
  const paused = new Set<ServiceProcess>();
  const wakes: Promise<void>[] = [];
  const note = (line: string): void => {
    incidents.push(line);
    tell(line);
  };
  // On a busy machine a process takes longer to come than the whole time.
  const isEnough = (): boolean => incidents.length >= leastIncidents || performance.now() > until + 60_000;
  while (performance.now() < until || !isEnough()) {
    await pause(1000 + 3000 * random());
    const awake = fleet.members.filter((member) => !paused.has(member));
    const member = awake[Math.trunc(random() * awake.length)];
    // Somebody has to answer.
    if (member === undefined || awake.length < 2) continue;
    const kind = random();
    if (kind < 0.5) {
      note(`kill -9 of ${member.pid}`);
      const ended = fleet.end(member, 'kill');
      // It does nothing from here on; that it is gone is told when this process has the time to hear it.
      lives.of(member).endedAt = Date.now();
      await ended;
      lives.of(await fleet.join());
    } else if (kind < 0.8) {
      const ms = Math.min(1000 * longestPauseSeconds * random() ** 2 + 500, Math.max(until - performance.now(), 500));
      note(`SIGSTOP of ${member.pid} for ${(ms / 1000).toFixed(1)} s`);
      const standing = { from: Date.now(), to: Number.POSITIVE_INFINITY };
      lives.of(member).pauses.push(standing);
      paused.add(member);
      fleet.pause(member);
      wakes.push(
        pause(ms).then(() => {
          paused.delete(member);
          standing.to = Date.now();
          fleet.resume(member);
        }),
      );
    } else if (kind < 0.9) {
      note(`SIGTERM of ${member.pid}`);
      await fleet.end(member, 'stop');
      lives.of(await fleet.join());
    } else {
      note('the proxy cuts all answers');
      fleet.proxy.cut();
    }
  }
  await Promise.all(wakes);
  return incidents;
};

const kinds: readonly Cut[] = ['before', 'after', 'within', 'late'];
// A unit of work, too, is to come through now and then.
const cutShare = 0.1;
// Fewer prove little.
const leastCuts = 50;

/** Cuts connections where a process sends something, and all of them at times, with nobody let in for a moment. */
const cutConnections = async (
  proxy: CuttingProxy,
  { seconds, tell = () => undefined }: SoakOptions,
  random: () => number,
): Promise<string[]> => {
  const incidents: string[] = [];
  const until = performance.now() + seconds * 1000;
  proxy.plan = () => (random() < cutShare ? (kinds[Math.trunc(random() * kinds.length)] ?? null) : null);
  // On a busy machine less is sent in the same time.
  const isEnough = (): boolean => proxy.cuts > leastCuts || performance.now() > until + 60_000;
  while (performance.now() < until || !isEnough()) {
    await pause(2000 + 2000 * random());
    const ms = Math.trunc(200 + 1300 * random());
    incidents.push(`nobody is let in for ${ms} ms`);
    tell(incidents.at(-1) ?? '');
    proxy.shut();
    await pause(ms);
    proxy.open();
  }
  proxy.plan = () => null;
  return incidents;
};

/** Others have closed the run of a process that stood still, which then says so to who waits for it. */
const wasOrphaned = (error: unknown): boolean =>
  (error as { details?: { errorType?: unknown } } | undefined)?.details?.errorType === 'orphaned';

/** A request that failed for a reason that the service has no name for. */
const unexplained = (lives: readonly Life[]): string[] =>
  lives.flatMap(({ pid, log }) =>
    log()
      .filter(({ code, error }) => code === 'internal' && !wasOrphaned(error))
      .map(({ method, path, error }) => `process ${pid} failed ${method} ${path}: ${JSON.stringify(error)}`),
  );

/** A fleet under load while its processes come and go, and what does not agree at the end. */
export const soak = async (options: SoakOptions): Promise<SoakReport> => {
  const world = await startEffectsServer();
  const folder = mkdtempSync(join(tmpdir(), 'acp-soak-'));
  world.writeTools(folder);
  const database = await createDatabase();
  const proxy = await startCuttingProxy(database.url);
  const place = options.disturbed === 'connections' ? { database: proxy.url } : {};
  const random = seeded(options.seed);
  const lengths = seeded(options.seed + 2);
  const provider = await openMeteredProvider(() => Math.trunc(400 * lengths()), 30);
  const priced = {
    Quotas: { ...service.Quotas, Strict: true },
    Pricing: { Currency: 'EUR', openai: { m: { Input: 3, Output: 15 } } },
    Providers: { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } },
  };
  const setup = { script, service: { ...service, ...priced }, host: { Tools: [folder] } };
  const fleet = await openFleet({ ...place, processes: options.processes, ...setup });
  try {
    const named = (name: string): string[] =>
      Array.from({ length: Math.ceil(options.seconds / secondsPerLimit) }, (_, index) => `${name}-${index}`);
    const agents = { limitedAgents: named('limited'), pricedAgents: named('priced') };
    await prepare(fleet, agents);
    const lives = watchLives(fleet);
    const history = emptyHistory();
    let over = false;
    const isOver = () => over;
    const load = applyLoad({ url: fleet.url, history, isOver, random: seeded(options.seed + 1), ...agents });
    const incidents = await (options.disturbed === 'connections'
      ? cutConnections(proxy, options, random)
      : disturb(fleet, lives, options, random));
    over = true;
    await load;
    const [service] = fleet.members;
    if (service === undefined) throw new Error('Nobody serves.');
    // What dead processes had is closed, taken up or continued by the others.
    await until('the end of all runs and jobs', () => isIdle(service));
    return {
      history,
      incidents,
      cuts: proxy.cuts,
      errors: fleet.members.flatMap((member) =>
        member.log().flatMap(({ level, message }) => (level === 'error' ? [message] : [])),
      ),
      lives: lives.all(),
      findings: [
        ...(await findings({
          service,
          history,
          hits: world.hits,
          limit,
          allowance,
          mostLogs: 500,
          lives: lives.all(),
        })),
        ...unexplained(lives.all()),
      ],
    };
  } finally {
    world.close();
    provider.close();
    await fleet.close();
    await proxy.close();
    await database.drop();
    rmSync(folder, { recursive: true, force: true });
  }
};
