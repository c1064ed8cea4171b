import { isMade, type OpenCall } from '../../context/index.ts';

/** Where a call waits until none of its turn runs beside it. */
export interface CallLine {
  /** False: the turn has failed meanwhile, and the call is not made. */
  alone(): Promise<boolean>;
}

interface Waiting {
  readonly position: number;
  go(): void;
}

/** The calls that found out on their way that they may not share their time; they follow the others, in the model's order. */
const createLine = (calls: number) => {
  const line: Waiting[] = [];
  let running = calls;
  let failed = false;
  const next = (): void => {
    if (running > 0) return;
    // Nothing runs, so everything that has to wait stands in the line.
    line.sort((left, right) => left.position - right.position);
    const first = line.shift();
    if (first === undefined) return;
    running += 1;
    first.go();
  };
  const leave = (): void => {
    running -= 1;
    next();
  };
  return {
    at: (position: number): CallLine => ({
      alone: () =>
        new Promise((resolve) => {
          line.push({ position, go: () => resolve(!failed) });
          leave();
        }),
    }),
    async through<T>(call: Promise<T>): Promise<T> {
      try {
        return await call;
      } catch (error) {
        failed = true;
        throw error;
      } finally {
        leave();
      }
    },
  };
};

/** A person has had a say in it. */
const goesAlone = (open: OpenCall): boolean => isMade(open) && open.answer !== 'execute';

/**
 * Runs the calls of one turn side by side, but for those that need an approval: what a person has approved goes first,
 * what a standing rule approves goes last, each by itself. Results come in the order of the calls. Waits for all before
 * it throws what the first of them threw.
 */
export const sideBySide = async <T>(
  calls: readonly OpenCall[],
  signal: AbortSignal,
  runOne: (open: OpenCall, line: CallLine | null) => Promise<T>,
): Promise<T[]> => {
  const results = new Map<OpenCall, T>();
  for (const open of calls) {
    if (!goesAlone(open) || signal.aborted) continue;
    results.set(open, await runOne(open, null));
  }
  const others = calls.filter((open) => !goesAlone(open));
  const line = createLine(others.length);
  const settled = await Promise.allSettled(
    others.map(async (open, position) => {
      results.set(open, await line.through(runOne(open, line.at(position))));
    }),
  );
  for (const end of settled) if (end.status === 'rejected') throw end.reason;
  return calls.flatMap((open) => {
    const result = results.get(open);
    return result === undefined ? [] : [result];
  });
};
