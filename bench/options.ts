import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export const scaleOutParts = ['stores', 'fleets', 'wire', 'many', 'claims', 'elsewhere'] as const;
export type ScaleOutPart = (typeof scaleOutParts)[number];

export interface Options {
  readonly rounds: number;
  /** Length of one measurement; a round has one for each target, answer and concurrency. */
  readonly seconds: number;
  readonly concurrency: readonly number[];
  readonly turns: number;
  readonly starts: number;
  /** Turns of the session that is read and branched. */
  readonly history: number;
  /** Runs that one run calls, in the tree that is exported and replayed. */
  readonly tree: number;
  /** Runs in the store whose list is timed. */
  readonly listed: number;
  readonly json: string;
  readonly acp: string | undefined;
  /** Another build that the program is compared with, in turns, instead of everything else. */
  readonly against: string | undefined;
  readonly profile: boolean;
  /** Several processes on PostgreSQL, instead of everything else. */
  readonly postgres: boolean;
  /** Parts of what is measured there. */
  readonly only: ReadonlySet<ScaleOutPart>;
}

export const usage = `npm run bench -- [options]

  --quick               fewer and shorter rounds, a shorter session: an idea of the numbers in one minute
  --seconds <n>         length of one measurement (default 1.5)
  --rounds <n>          measurements of each kind; their median counts (default 5)
  --concurrency <list>  such as 1,16,64 (the default); comparisons in turns use 16
  --turns <n>           turns of the long session (default 500; 0: none)
  --history <n>         turns of the session that is read and branched (default 1000; 0: none)
  --tree <n>            agents that one run calls, in the tree that is exported and replayed (default 500; 0: none)
  --starts <n>          starts of the program that are timed (default 9; 0: none)
  --listed <n>          runs in the store whose list is timed (default 1000000; 0: none)
  --acp <path>          program to measure (default dist/acp, else dist/acp.mjs)
  --against <path>      compare that program with another build of it in turns, and measure nothing else
  --postgres            measure one and several processes on PostgreSQL, and nothing else
  --only <list>         with --postgres, these parts alone: ${scaleOutParts.join(',')}
  --json <path>         file for the results (default bench/results/latest.json)
  --cpu-prof            profile acp under load at concurrency 16 instead, and sum its time by layer; with --postgres
                        four processes of 16 clients each, and 500 runs in progress
`;

const positive = (name: string, text: string, least = 1): number => {
  const value = Number(text);
  if (!(value >= least)) throw new Error(`--${name} must be a number of at least ${least}`);
  return value;
};

const isPart = (text: string): text is ScaleOutPart => (scaleOutParts as readonly string[]).includes(text);

const partsOf = (text: string | undefined): ReadonlySet<ScaleOutPart> => {
  const named = text?.split(',') ?? scaleOutParts;
  const parts = named.filter(isPart);
  if (parts.length < named.length) throw new Error(`--only names parts of ${scaleOutParts.join(',')}`);
  return new Set(parts);
};

/** Null: the help was asked for. Throws on options that do not exist or make no sense. */
export const readOptions = (args: readonly string[], defaultJson: string): Options | null => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h', default: false },
      quick: { type: 'boolean', default: false },
      seconds: { type: 'string' },
      rounds: { type: 'string' },
      concurrency: { type: 'string', default: '1,16,64' },
      turns: { type: 'string' },
      starts: { type: 'string' },
      history: { type: 'string' },
      tree: { type: 'string' },
      listed: { type: 'string' },
      acp: { type: 'string' },
      against: { type: 'string' },
      json: { type: 'string', default: defaultJson },
      'cpu-prof': { type: 'boolean', default: false },
      postgres: { type: 'boolean', default: false },
      only: { type: 'string' },
    },
  });
  if (values.help) return null;
  const defaults = values.quick
    ? { seconds: '0.5', rounds: '3', turns: '100', starts: '3', listed: '100000', history: '100', tree: '100' }
    : { seconds: '1.5', rounds: '5', turns: '500', starts: '9', listed: '1000000', history: '1000', tree: '500' };
  return {
    seconds: positive('seconds', values.seconds ?? defaults.seconds, 0.1),
    rounds: positive('rounds', values.rounds ?? defaults.rounds),
    concurrency: values.concurrency.split(',').map((text) => positive('concurrency', text)),
    turns: positive('turns', values.turns ?? defaults.turns, 0),
    history: positive('history', values.history ?? defaults.history, 0),
    tree: positive('tree', values.tree ?? defaults.tree, 0),
    starts: positive('starts', values.starts ?? defaults.starts, 0),
    listed: positive('listed', values.listed ?? defaults.listed, 0),
    json: values.json,
    // Servers run in folders of their own.
    acp: values.acp === undefined ? undefined : resolve(values.acp),
    against: values.against === undefined ? undefined : resolve(values.against),
    profile: values['cpu-prof'],
    postgres: values.postgres,
    only: partsOf(values.only),
  };
};
