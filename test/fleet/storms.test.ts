import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { environment } from '../../src/core/environment.ts';
import { openFleet } from '../support/fleet.ts';
import { findPostgres } from '../support/postgres-server.ts';
import { openMeteredProvider } from '../support/providers/metered.ts';
import { startEffectsServer } from './effects-server.ts';
import { arrivalSettings, callsStartOnce, prepareArrivals } from './storms/arrivals.storms.ts';
import {
  approvalsAreDecidedOnce,
  decisionScript,
  keysAreUsedOnce,
  linesAreKept,
  prepareDecisions,
  requestsAreAnsweredOnce,
  turnsFollowEachOther,
} from './storms/decisions.storms.ts';
import { equalBytesAreIndependent, equalBytesGoTogether } from './storms/files.storms.ts';
import { clients, type Storm } from './storms/storm.ts';
import { booksAgree, prepareUse, prices, runsAreBounded, spendingIsBounded, thresholds } from './storms/use.storms.ts';
import {
  callsOfTheLostAreMadeOnce,
  jobsAreDoneOnce,
  prepareWork,
  providersAreShutEverywhere,
  stopsHoldEverywhere,
  unrecordedCallsAreNotMade,
  workScript,
} from './storms/work.storms.ts';

// The short form; `npm run test:fleet -- --storms --processes 8 --rounds 4` is a longer one.
const { ACP_STORM_PROCESSES: processes = '2', ACP_STORM_ROUNDS: rounds = '1' } = environment();
const skip = findPostgres() === null && 'no PostgreSQL server is to be found';
const timeout = 120_000 * Number(rounds);

const openStorm = async (): Promise<Storm & { close(): Promise<void> }> => {
  const world = await startEffectsServer();
  const folder = mkdtempSync(join(tmpdir(), 'acp-storm-'));
  world.writeTools(folder);
  let wish = 0;
  const provider = await openMeteredProvider((messages) => {
    if (messages.includes('greedy')) return Number.POSITIVE_INFINITY;
    wish = (wish * 31 + 7) % 400;
    return wish;
  });
  const closeWorld = (): void => {
    provider.close();
    world.close();
    rmSync(folder, { recursive: true, force: true });
  };
  const fleet = await openFleet({
    processes: Number(processes),
    script: [
      ...decisionScript,
      ...workScript,
      { reply: { text: 'Done.', usage: { inputTokens: 20, outputTokens: 10 } } },
    ],
    host: { Tools: [folder] },
    service: {
      Quotas: { Strict: true, AllowOnStoreFailure: false, ThresholdPercents: thresholds },
      Pricing: { Currency: 'EUR', openai: { m: prices }, demo: { m: { Input: 1, Output: 2 } } },
      Providers: { OpenAI: { ApiKey: 'none', Endpoint: `${provider.origin}/v1` } },
      Scheduling: { MaxConcurrentJobs: 8, PollInterval: '1s' },
      RunReconciliation: { Enabled: true },
      Egress: { AllowPrivateNetworkTargets: true },
      ...arrivalSettings,
    },
  }).catch((error: unknown) => {
    // What still listens would keep the test from its end.
    closeWorld();
    throw error;
  });
  return {
    fleet,
    world,
    provider,
    rounds: Number(rounds),
    async close() {
      await fleet.close();
      closeWorld();
    },
  };
};

describe(`storms of ${clients} clients over ${processes} processes`, { skip, timeout: 20 * timeout }, () => {
  let storm: Awaited<ReturnType<typeof openStorm>>;
  before(async () => {
    storm = await openStorm();
    await prepareUse(storm);
    await prepareDecisions(storm);
    await prepareWork(storm);
    await prepareArrivals(storm);
  });
  after(() => storm.close());

  const breaks = (name: string, work: (storm: Storm) => Promise<void>): void => {
    test(name, { timeout }, () => work(storm));
  };
  // Five seconds later rules hold everywhere; what goes first needs none.
  breaks('RUN-18 a key is one run, and all get its answer', keysAreUsedOnce);
  breaks('APPR-26 APPR-29 an approval is decided once, and its call made once', approvalsAreDecidedOnce);
  breaks('APPR-15 a request is answered once in its session', requestsAreAnsweredOnce);
  breaks('RUN-8 one writes in a session at a time, and no turn is lost', turnsFollowEachOther);
  breaks('RUN-8 whoever waits for a session comes before whoever comes later', linesAreKept);
  breaks('JOB-23 JOB-29 a job is done once, or withdrawn', jobsAreDoneOnce);
  breaks('TRIGGER-20 of a call that comes a thousand times and more one starts a run', callsStartOnce);
  breaks('a call that the store does not take is not made', unrecordedCallsAreNotMade);
  breaks('RUN-74 what a process has lost another one does, and no call is made twice', callsOfTheLostAreMadeOnce);
  breaks('ATT-6 the last file that goes, and an equal one that comes in the same moment', equalBytesGoTogether);
  breaks('ATT-6 equal files live and die by themselves', equalBytesAreIndependent);
  breaks('after a second no run of a stopped agent begins anywhere', stopsHoldEverywhere);
  breaks('after five seconds no provider that was shut is called anywhere', providersAreShutEverywhere);
  breaks('QUOTA-12 QUOTA-27 not one run more is admitted, and each threshold is told once', runsAreBounded);
  breaks('QUOTA-13 strict: not one token and not one micro-unit more is used', spendingIsBounded);
  breaks('QUOTA-13 QUOTA-24 after all storms counters, runs, statistics and audit trail agree', booksAgree);
});
