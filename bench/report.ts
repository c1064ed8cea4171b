import type { Against } from './against.ts';
import type { OpenAiDoor } from './openai.ts';
import type { Recorded } from './recordings.ts';
import type { Listing } from './run-listing.ts';
import type { SessionTurn, StoredRun } from './storage-growth.ts';
import type { Measurement } from './throughput.ts';
import type { Turns } from './turns.ts';
import type { YoungGarbage } from './young-garbage.ts';

export interface Memory {
  readonly name: string;
  readonly beforeBytes: number;
  readonly afterBytes: number;
  /** Fifteen seconds after the load. */
  readonly idleBytes: number;
  readonly peakBytes: number;
}

export interface Starts {
  readonly helpMs: number;
  readonly listeningMs: number;
  readonly starts: number;
}

export interface Goal {
  readonly name: string;
  readonly measured: number;
  readonly limit: number;
  readonly unit: string;
  readonly met: boolean;
}

export interface Results {
  readonly date: string;
  readonly machine: string;
  readonly node: string;
  /** Processes that wanted to run in the minute before; near 0 on a machine that does nothing else. */
  readonly loadBefore: number;
  readonly program: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly measurements: readonly Measurement[];
  /** SSE runs under quota rules, in turns with a service that has none. */
  readonly quotaRules: readonly Turns[];
  /** Streamed chats of the OpenAI API, in turns with the native endpoint. */
  readonly openAi: OpenAiDoor;
  readonly memory: readonly Memory[];
  readonly storedRuns: readonly StoredRun[];
  readonly session: readonly SessionTurn[];
  readonly starts: Starts | null;
  /** Pages of the run list, by filter, in a store of that many runs. */
  readonly listings: readonly Listing[];
  readonly listedRuns: number;
  /** Sessions read and branched, runs replayed and exported. */
  readonly recordings: readonly Recorded[];
  readonly youngGarbage: readonly YoungGarbage[];
  readonly goals: readonly Goal[];
}

type Cell = string | number;

export const number = (value: number, digits = 0): string => (Number.isFinite(value) ? value.toFixed(digits) : '–');
export const mebibytes = (bytes: number): string => number(bytes / 1_048_576, 0);

/** Columns as wide as their longest cell; the first one to the left, numbers to the right. */
export const table = (head: readonly string[], rows: readonly (readonly Cell[])[]): string => {
  const all = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

const names = { simulator: '(a) simulator', yardstick: '(b) yardstick', acp: '(c) acp' };

const measurementRows = (measurements: readonly Measurement[]): Cell[][] =>
  measurements.map((measured) => [
    `${names[measured.target]}, ${measured.answer === 'sse' ? 'SSE' : 'JSON'}${measured.tools ? ', a tool call' : ''}`,
    measured.concurrency,
    number(measured.runsPerSecond),
    measured.target === 'simulator' ? '–' : number(measured.ratio, 2),
    number(measured.p50Ms, 2),
    number(measured.p99Ms, 2),
    measured.answer === 'sse' ? number(measured.firstTokenMs, 2) : '–',
    measured.answer === 'sse' && measured.target !== 'simulator' ? number(measured.addedFirstTokenMs, 2) : '–',
    number(measured.cpuMsPerRun, 2),
    measured.target === 'simulator' ? '–' : number(measured.cpuRatio, 2),
  ]);

export const turnsRows = (turns: readonly Turns[], prefix = ''): Cell[][] =>
  turns.map(({ name, runs, runsPerSecond, ratio, quartiles, cpuMsPerRun, cpuRatio }) => [
    `${prefix}${name}`,
    runs,
    number(runsPerSecond),
    number(ratio, 3),
    quartiles.map((quartile) => number(quartile, 3)).join(' to '),
    number(cpuMsPerRun, 3),
    number(cpuRatio, 3),
  ]);

export const turnsHead = (first: string): string[] => [
  '',
  'runs',
  'runs/s',
  `to ${first}`,
  'middle half',
  'CPU ms/run',
  `CPU to ${first}`,
];

export const section = (title: string, text: string): string => `${title}\n\n${text}\n`;

const startText = (starts: Starts | null): string[] =>
  starts === null
    ? []
    : [
        section(
          `Starts (median of ${starts.starts})`,
          table(
            ['', 'ms'],
            [
              ['acp --help', number(starts.helpMs)],
              ['acp serve, until it listens', number(starts.listeningMs)],
            ],
          ),
        ),
      ];

const storedText = (stored: readonly StoredRun[]): string =>
  table(
    ['per run', 'rows', 'bytes of values', 'bytes of the file', 'bytes given to storage', 'rows by table'],
    stored.map((run) => [
      `${run.target}${run.tools ? ', a tool call' : ''}`,
      number(run.rows, 1),
      number(run.valueBytes),
      number(run.fileBytes),
      number(run.writtenBytes),
      Object.entries(run.rowsByTable)
        .map(([name, rows]) => `${name} ${number(rows, rows % 1 === 0 ? 0 : 2)}`)
        .join(', '),
    ]),
  );

const listingText = ({ listings, listedRuns }: Results): string[] =>
  listings.length === 0
    ? []
    : [
        section(
          `Run list: a page of 50 of ${listedRuns} runs, in the store`,
          table(
            ['filter', 'rows', 'p50 ms', 'p99 ms'],
            listings.map(({ filter, rows, p50Ms, p99Ms }) => [filter, rows, number(p50Ms, 2), number(p99Ms, 2)]),
          ),
        ),
      ];

const recordedText = (recordings: readonly Recorded[]): string[] =>
  recordings.length === 0
    ? []
    : [
        section(
          'Sessions and recordings, one request after another',
          table(
            [
              '',
              'times',
              'p50 ms',
              'p99 ms',
              'first bytes ms',
              'CPU ms',
              'bytes of the answer',
              'bytes of values',
              'memory added, MiB',
            ],
            recordings.map((line) => [
              line.name,
              line.repeats,
              number(line.p50Ms, 2),
              number(line.p99Ms, 2),
              number(line.firstBytesMs, 2),
              number(line.cpuMs, 2),
              number(line.answerBytes),
              number(line.storedBytes),
              mebibytes(line.memoryBytes),
            ]),
          ),
        ),
      ];

export const goalText = (goals: readonly Goal[]): string =>
  table(
    ['Goal', 'measured', 'limit', ''],
    goals.map((goal) => [
      goal.name,
      `${number(goal.measured, 2)} ${goal.unit}`.trim(),
      `${goal.limit} ${goal.unit}`.trim(),
      goal.met ? 'met' : 'MISSED',
    ]),
  );

export const reportText = (results: Results): string =>
  [
    `${results.machine}, Node ${results.node}, load before the start ${number(results.loadBefore, 1)}`,
    `acp: ${results.program}; medians of ${results.rounds} rounds of ${results.seconds} s for each line\n`,
    section(
      'Load: 20 text chunks; ratio and added time are taken within each round; (b) never has a tool call',
      table(
        [
          '',
          'at once',
          'runs/s',
          'to (b)',
          'p50 ms',
          'p99 ms',
          'first token ms',
          'added to (a)',
          'CPU ms/run',
          'CPU to (b)',
        ],
        measurementRows(results.measurements),
      ),
    ),
    ...(results.quotaRules.length === 0
      ? []
      : [
          section(
            'Quota rules: SSE runs, in turns with a service without rules',
            table(turnsHead('none'), turnsRows(results.quotaRules)),
          ),
        ]),
    section(
      'The API for clients of OpenAI: streamed chats, in turns with the native endpoint',
      table(turnsHead('native'), turnsRows(results.openAi.turns)),
    ),
    ...(results.openAi.gateway === null
      ? []
      : [
          section(
            'Exposed models, in turns with a gateway of models on the same provider',
            table(
              turnsHead('the gateway'),
              results.openAi.gateway.flatMap(({ answers, turns }) =>
                turnsRows(turns, answers === 'both' ? 'SSE and JSON in turn: ' : `${answers.toUpperCase()}: `),
              ),
            ),
          ),
        ]),
    section(
      'Memory, MiB',
      table(
        ['', 'before', 'after load', '15 s later', 'peak'],
        results.memory.map(({ name, beforeBytes, afterBytes, idleBytes, peakBytes }) => [
          name,
          mebibytes(beforeBytes),
          mebibytes(afterBytes),
          mebibytes(idleBytes),
          mebibytes(peakBytes),
        ]),
      ),
    ),
    section('Storage', storedText(results.storedRuns)),
    ...(results.session.length === 0
      ? []
      : [
          section(
            'One session (medians of ten turns)',
            table(
              ['turn', 'bytes of values', 'bytes given to storage', 'ms'],
              results.session.map((turn) => [
                turn.turn,
                number(turn.valueBytes),
                number(turn.writtenBytes),
                number(turn.durationMs, 2),
              ]),
            ),
          ),
        ]),
    ...recordedText(results.recordings),
    ...listingText(results),
    ...startText(results.starts),
    goalText(results.goals),
  ].join('\n');

/** Two builds compared in turns; the first of each pair is what the second is compared with. */
export const againstText = ({ lines, memory }: Against): string =>
  [
    section(
      'Two builds in turns, 16 at once',
      table(
        turnsHead('the first'),
        lines.flatMap(({ name, turns }) => turnsRows(turns, `${name}: `)),
      ),
    ),
    section(
      'Memory, MiB',
      table(
        ['', 'after load', 'peak'],
        memory.map(({ name, afterBytes, peakBytes }) => [name, mebibytes(afterBytes), mebibytes(peakBytes)]),
      ),
    ),
  ].join('\n');
