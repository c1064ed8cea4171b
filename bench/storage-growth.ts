import { applyLoad, type Call } from './load.ts';
import { writtenBytes } from './process-usage.ts';
import type { Server } from './servers.ts';
import { median } from './statistics.ts';
import { readStore } from './store-content.ts';
import { acpCall } from './workspace.ts';

/** What one run leaves behind. */
export interface StoredRun {
  readonly target: string;
  readonly tools: boolean;
  readonly runs: number;
  readonly rows: number;
  readonly rowsByTable: Readonly<Record<string, number>>;
  /** Bytes of the values alone, of the file after the log was folded in, and given to storage (log and file). */
  readonly valueBytes: number;
  readonly fileBytes: number;
  readonly writtenBytes: number;
}

export interface StoreUnderLoad {
  readonly target: string;
  readonly tools: boolean;
  readonly store: string;
  start(): Promise<Server>;
  call(server: Server): Call;
}

const loadConcurrency = 16;
const loadSeconds = 120;

/** The store is read while no server has it open, so that it is one file without a log. */
export const measureStoredRun = async (subject: StoreUnderLoad, runs: number): Promise<StoredRun> => {
  // One run creates what is created once: tables, and pages that fill up later.
  const first = await subject.start();
  await applyLoad(subject.call(first), { concurrency: 1, seconds: loadSeconds, runs: 1 });
  await first.stop();
  const before = readStore(subject.store);
  const server = await subject.start();
  const writtenBefore = writtenBytes(server.pid);
  const load = await applyLoad(subject.call(server), { concurrency: loadConcurrency, seconds: loadSeconds, runs });
  const written = writtenBytes(server.pid) - writtenBefore;
  await server.stop();
  const after = readStore(subject.store);
  const perRun = (value: number): number => value / load.runs;
  return {
    target: subject.target,
    tools: subject.tools,
    runs: load.runs,
    rows: perRun(after.totalRows - before.totalRows),
    rowsByTable: Object.fromEntries(
      Object.entries(after.rows)
        .map(([table, count]): [string, number] => [table, perRun(count - (before.rows[table] ?? 0))])
        .filter(([, count]) => count > 0),
    ),
    valueBytes: perRun(after.valueBytes - before.valueBytes),
    fileBytes: perRun(after.fileBytes - before.fileBytes),
    writtenBytes: perRun(written),
  };
};

/** Medians over a few turns of one session around the named one. */
export interface SessionTurn {
  readonly turn: number;
  readonly valueBytes: number;
  readonly writtenBytes: number;
  readonly durationMs: number;
}

const window = 10;

/** Runs one session turn by turn. A turn that copied the history would write more and more. */
export const measureSession = async (acp: Server, store: string, turns: number): Promise<SessionTurn[]> => {
  const call = acpCall(acp, 'sse', false, 'long-session');
  const measureWindow = async (turn: number): Promise<SessionTurn> => {
    const written: number[] = [];
    const values: number[] = [];
    const durations: number[] = [];
    for (let index = 0; index < window; index += 1) {
      const before = { written: writtenBytes(acp.pid), values: readStore(store).valueBytes };
      const load = await applyLoad(call, { concurrency: 1, seconds: loadSeconds, runs: 1 });
      durations.push(load.durations[0] ?? Number.NaN);
      written.push(writtenBytes(acp.pid) - before.written);
      values.push(readStore(store).valueBytes - before.values);
    }
    return { turn, valueBytes: median(values), writtenBytes: median(written), durationMs: median(durations) };
  };
  const start = await measureWindow(1);
  await applyLoad(call, { concurrency: 1, seconds: loadSeconds, runs: Math.max(0, turns - 2 * window) });
  return [start, await measureWindow(turns)];
};
