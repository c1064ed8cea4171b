import { applyLoad, type Call } from './load.ts';
import { cpuMs } from './process-usage.ts';
import type { Server } from './servers.ts';
import { median, quantile } from './statistics.ts';
import { type Answer, acpCall, modelCall, yardstickCall } from './workspace.ts';

export type Target = 'simulator' | 'yardstick' | 'acp';

/** Numbers of one kind of load: medians over the rounds. */
export interface Measurement {
  readonly target: Target;
  readonly answer: Answer;
  readonly tools: boolean;
  readonly concurrency: number;
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly firstTokenMs: number;
  /** Over the simulator called directly in the same round. */
  readonly addedFirstTokenMs: number;
  readonly cpuMsPerRun: number;
  /** The yardstick's processor time for a run, divided by this one's: unlike `ratio` it stays true on a busy machine. */
  readonly cpuRatio: number;
  /** To the yardstick with the same answer and concurrency in the same round; the yardstick has no tools. */
  readonly ratio: number;
}

interface Scenario {
  readonly target: Target;
  readonly answer: Answer;
  readonly tools: boolean;
  readonly server: Server;
  readonly call: Call;
}

interface Sample {
  readonly scenario: Scenario;
  readonly concurrency: number;
  readonly round: number;
  readonly runs: number;
  readonly runsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly firstTokenMs: number;
  readonly cpuMs: number;
}

export interface Servers {
  readonly simulator: Server;
  readonly yardstick: Server;
  readonly acp: Server;
}

export interface ThroughputOptions {
  readonly rounds: number;
  readonly seconds: number;
  readonly concurrency: readonly number[];
}

const answers = ['sse', 'json'] as const;

/** In the order in which they are measured: what is compared stands close together. */
const scenarios = ({ simulator, yardstick, acp }: Servers): readonly Scenario[] =>
  answers.flatMap((answer): Scenario[] => [
    { target: 'simulator', answer, tools: false, server: simulator, call: modelCall(simulator, answer) },
    { target: 'yardstick', answer, tools: false, server: yardstick, call: yardstickCall(yardstick, answer) },
    { target: 'acp', answer, tools: false, server: acp, call: acpCall(acp, answer, false) },
    { target: 'acp', answer, tools: true, server: acp, call: acpCall(acp, answer, true) },
  ]);

const measure = async (scenario: Scenario, concurrency: number, seconds: number, round: number): Promise<Sample> => {
  const { pid } = scenario.server;
  const cpuBefore = cpuMs(pid);
  const load = await applyLoad(scenario.call, { concurrency, seconds });
  return {
    scenario,
    concurrency,
    round,
    runs: load.runs,
    runsPerSecond: load.runs / load.seconds,
    p50Ms: quantile(load.durations, 0.5),
    p99Ms: quantile(load.durations, 0.99),
    firstTokenMs: quantile(load.firstTokens, 0.5),
    cpuMs: cpuMs(pid) - cpuBefore,
  };
};

const cpuPerRun = (samples: readonly Sample[]): number =>
  sum(samples.map((sample) => sample.cpuMs)) / sum(samples.map((sample) => sample.runs));

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const summarize = (own: readonly Sample[], all: readonly Sample[]): Measurement | null => {
  const first = own[0];
  if (first === undefined) return null;
  const { target, answer, tools } = first.scenario;
  const sameRound = (sample: Sample, other: Target): Sample | undefined =>
    all.find(
      ({ scenario, concurrency, round }) =>
        scenario.target === other &&
        scenario.answer === answer &&
        concurrency === sample.concurrency &&
        round === sample.round,
    );
  const over = (take: (sample: Sample) => number): number => median(own.map(take));
  const yardstick = own.flatMap((sample) => sameRound(sample, 'yardstick') ?? []);
  return {
    target,
    answer,
    tools,
    concurrency: first.concurrency,
    runs: sum(own.map((sample) => sample.runs)),
    runsPerSecond: over((sample) => sample.runsPerSecond),
    p50Ms: over((sample) => sample.p50Ms),
    p99Ms: over((sample) => sample.p99Ms),
    firstTokenMs: over((sample) => sample.firstTokenMs),
    addedFirstTokenMs: over(
      (sample) => sample.firstTokenMs - (sameRound(sample, 'simulator')?.firstTokenMs ?? Number.NaN),
    ),
    cpuMsPerRun: cpuPerRun(own),
    cpuRatio: cpuPerRun(yardstick) / cpuPerRun(own),
    ratio: over((sample) => sample.runsPerSecond / (sameRound(sample, 'yardstick')?.runsPerSecond ?? Number.NaN)),
  };
};

const warmUpConcurrency = 16;
const warmUpLoads = { most: 15, steady: 3 };
/** A load counts as faster than those before it from here on. */
const fasterRatio = 1.05;

/**
 * Applies load until it has stopped getting faster. What V8 compiles in the background takes the larger program some
 * four seconds on an idle machine and twice that on a busy one; before that its rate says how busy the machine is.
 */
const warmUp = async ({ call }: Scenario, seconds: number): Promise<void> => {
  let best = 0;
  let steady = 0;
  for (let count = 0; count < warmUpLoads.most && steady < warmUpLoads.steady; count += 1) {
    const load = await applyLoad(call, { concurrency: warmUpConcurrency, seconds });
    const rate = load.runs / load.seconds;
    steady = rate > best * fasterRatio ? 0 : steady + 1;
    best = Math.max(best, rate);
  }
};

/** Measures all targets in turns, so that whatever else the machine does meets all of them alike. */
export const measureThroughput = async (
  servers: Servers,
  options: ThroughputOptions,
  note: (text: string) => void,
): Promise<Measurement[]> => {
  const all = scenarios(servers);
  note('warming up');
  for (const scenario of all) await warmUp(scenario, Math.min(1, options.seconds));
  const samples: Sample[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    note(`round ${round} of ${options.rounds}`);
    for (const concurrency of options.concurrency)
      for (const scenario of all) samples.push(await measure(scenario, concurrency, options.seconds, round));
  }
  return all.flatMap((scenario) =>
    options.concurrency.flatMap((concurrency) => {
      const own = samples.filter((sample) => sample.scenario === scenario && sample.concurrency === concurrency);
      return summarize(own, samples) ?? [];
    }),
  );
};
