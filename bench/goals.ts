import type { OpenAiDoor } from './openai.ts';
import type { Recorded } from './recordings.ts';
import type { Goal, Memory, Starts } from './report.ts';
import type { Listing } from './run-listing.ts';
import type { SessionTurn } from './storage-growth.ts';
import type { Measurement } from './throughput.ts';
import type { Turns } from './turns.ts';
import type { YoungGarbage } from './young-garbage.ts';

const bytesPerMb = 1_000_000;

export interface Measured {
  readonly measurements: readonly Measurement[];
  readonly quotaRules: readonly Turns[];
  readonly openAi: OpenAiDoor;
  readonly memory: readonly Memory[];
  readonly starts: Starts | null;
  readonly listings: readonly Listing[];
  readonly session: readonly SessionTurn[];
  readonly recordings: readonly Recorded[];
  readonly youngGarbage: readonly YoungGarbage[];
}

// Counters in memory, before holds were rows, came to 0.83 and 0.89 in turns.
const quotaGoals: readonly (readonly [name: string, least: number])[] = [
  ['a rule on runs', 0.8],
  ['a rule on tokens', 0.8],
];

/**
 * What the service promises, compared with what was measured; a goal that was not measured is left out.
 * Design: docs/design/performance.md.
 */
export const judge = ({
  measurements,
  quotaRules,
  openAi,
  memory,
  starts,
  listings,
  session,
  recordings,
  youngGarbage,
}: Measured): Goal[] => {
  const acp = (answer: 'sse' | 'json', concurrency: number): Measurement | undefined =>
    measurements.find(
      (measured) =>
        measured.target === 'acp' &&
        !measured.tools &&
        measured.answer === answer &&
        measured.concurrency === concurrency,
    );
  const atLeast = (name: string, measured: number | undefined, limit: number): Goal[] =>
    measured === undefined ? [] : [{ name, measured, limit, unit: '', met: measured >= limit }];
  const atMost = (name: string, measured: number | undefined, limit: number, unit: string): Goal[] =>
    measured === undefined || Number.isNaN(measured) ? [] : [{ name, measured, limit, unit, met: measured <= limit }];
  const branched = recordings.find(({ name }) => name.startsWith('branching'));
  const [firstTurn, lastTurn] = session;
  const growth =
    firstTurn === undefined || lastTurn === undefined ? undefined : lastTurn.valueBytes / firstTurn.valueBytes;
  const after = memory.find(({ name }) => name === 'acp')?.afterBytes;
  return [
    ...atLeast('runs/s to (b), SSE, 16 at once, at least', acp('sse', 16)?.ratio, 0.6),
    ...atLeast('runs/s to (b), JSON, 16 at once, at least', acp('json', 16)?.ratio, 0.5),
    ...quotaGoals.flatMap(([name, least]) =>
      atLeast(`runs/s with ${name}, to none, at least`, quotaRules.find((line) => line.name === name)?.ratio, least),
    ),
    ...atLeast('runs/s through /v1, to the native endpoint, at least', openAi.turns[1]?.ratio, 0.9),
    ...atLeast(
      'exposed models, requests/s to a gateway, streamed and whole in turn, at least',
      openAi.gateway?.find(({ answers }) => answers === 'both')?.turns[1]?.ratio,
      3,
    ),
    ...atMost('added to the first token by /v1, p50', openAi.addedFirstTokenMs, 0.2, 'ms'),
    ...atMost('added to the first token, 1 at once, p50', acp('sse', 1)?.addedFirstTokenMs, 1.5, 'ms'),
    ...atMost('memory after load', after === undefined ? undefined : after / bytesPerMb, 200, 'MB'),
    ...atMost(
      'a page of the run list, slowest filter, p50',
      listings.length === 0 ? undefined : Math.max(...listings.map(({ p50Ms }) => p50Ms)),
      10,
      'ms',
    ),
    ...atMost('bytes of values of the last turn of a session, to the first', growth, 1.1, ''),
    // The messages of a hundred turns are more.
    ...atMost('bytes of values that a branch adds, whatever its history', branched?.storedBytes, 2048, ''),
    // Less than 1 KB is seen, compiled code included; it was 8 to 16 while each run took all that it held along.
    ...youngGarbage.flatMap(({ answer, oldBytesPerRun }) =>
      atMost(`bytes that a run adds to the old generation, ${answer.toUpperCase()}`, oldBytesPerRun, 3000, ''),
    ),
    ...atMost('acp --help', starts?.helpMs, 150, 'ms'),
    ...atMost('acp serve, until it listens', starts?.listeningMs, 700, 'ms'),
  ];
};
