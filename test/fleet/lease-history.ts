import type { LogLine } from '../e2e/support.ts';

/** A span of time, in epoch milliseconds. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** A process as its log tells of it, with what was done to it from outside. */
export interface Life {
  readonly pid: number;
  log(): readonly LogLine[];
  /** When it was gone; infinity: it still serves. */
  readonly endedAt: number;
  /** While it was stopped it did nothing, and could not know that it had lost a lease. */
  readonly pauses: readonly Span[];
}

export const [takes, leaves] = ['This process does the work of a service', 'This process leaves a service to others'];

// From its waking to the line in which it says so a process has to get the processor.
const wakingMs = 2000;

/** When a process did the work of each service, by the name of the service. */
const work = ({ log, endedAt, pauses }: Life): Map<string, Span[]> => {
  const spans = new Map<string, Span[]>();
  const begun = new Map<string, number>();
  const add = (name: string, to: number): void => {
    const from = begun.get(name);
    begun.delete(name);
    if (from === undefined) return;
    let parts: Span[] = [{ from, to }];
    for (const pause of pauses)
      parts = parts.flatMap((part) => [
        { from: part.from, to: Math.min(part.to, pause.from) },
        { from: Math.max(part.from, pause.to + wakingMs), to: part.to },
      ]);
    spans.set(name, [...(spans.get(name) ?? []), ...parts.filter((part) => part.from < part.to)]);
  };
  for (const line of log()) {
    const [name, at] = [String(line['service']), Date.parse(String(line['time']))];
    if (line.message === takes) begun.set(name, at);
    // On a machine that is overloaded it says so later than it may act.
    if (line.message === leaves) add(name, Math.min(at, Date.parse(String(line['heldUntil'] ?? line['time']))));
  }
  for (const name of [...begun.keys()]) add(name, endedAt);
  return spans;
};

/** A service is never done by two processes at once. */
export const leaseFindings = (lives: readonly Life[]): string[] => {
  const all = lives.flatMap((life) =>
    [...work(life)].flatMap(([name, spans]) => spans.map((span) => ({ name, pid: life.pid, ...span }))),
  );
  return all.flatMap((one, index) =>
    all
      .slice(index + 1)
      .filter((other) => other.name === one.name && other.pid !== one.pid && other.from < one.to && one.from < other.to)
      .map((other) => `processes ${one.pid} and ${other.pid} held the lease of ${one.name} at once`),
  );
};
