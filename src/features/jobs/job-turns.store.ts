import type { StoreHandle } from '../../db/define-store.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import { type Claim, chooseThenTake, takeWhatIsLeft } from './job-claims.store.ts';
import { linesThatWait } from './waiting-lines.store.ts';
import { createWaitingLines, type Position, type WaitingLine, type WaitingLines } from './waiting-lines.ts';

/** What a worker has learnt of the jobs that wait. */
interface Known {
  /** All that were due up to here are taken, or stand in one of the lines. Null: nothing was looked at. */
  seen: Position | null;
  readonly lines: WaitingLines;
}

// Those of a process that is closed are of no use; in tests there are many.
const mostWorkers = 16;
// As many new jobs are read as cost about as much as looking up the tenants.
const mostNew = 200;
// A process that meets so many lines which others have emptied knows too little of them.
const mostMisses = 16;

// So many looks take about as long as a message there and back.
const tenantsAhead = 7;

/** Null: all due jobs are looked at. */
const startOf = (seen: Position | null, dueSince: number | null): Position | null => {
  if (seen === null || dueSince === null) return null;
  return dueSince <= seen.scheduledFor ? { scheduledFor: dueSince, id: '' } : seen;
};

/**
 * Claims whose order is fair. Jobs that fit are taken in the order of time. If they do not, lines of jobs take turns, and
 * the worker remembers which lines there are and how far each has come: to find that out anew takes longer the more of
 * them there are, and longer still while an old transaction keeps the database from clearing away what claims leave behind
 * in its indexes. What becomes due later, or comes back, is told by `dueSince`, or met by the next look at all jobs.
 * Where reads pass over what others take, leases that have lapsed are looked for then only, for the same reason.
 * Design: docs/design/jobs.md.
 */
export const takeInTurn = (storage: StoreHandle) => {
  const claims = (storage.dialect.readsPastLocks ? takeWhatIsLeft : chooseThenTake)(storage);
  const looks = linesThatWait(storage);
  const workers = new Map<string, Known>();
  // Where looks are messages, some more of them go in the same one.
  const lookedUpAhead = storage.dialect.readAll === undefined ? 0 : tenantsAhead;

  const knownTo = (owner: string): Known => {
    let known = workers.get(owner);
    if (known === undefined) {
      if (workers.size >= mostWorkers) workers.clear();
      known = { seen: null, lines: createWaitingLines() };
      workers.set(owner, known);
    }
    return known;
  };

  const lookUpTenants = async ({ lines }: Known): Promise<void> =>
    lines.setTenants(await looks.tenants(lines.lastTenant));

  /** Finds the lines of the jobs that have come since the last look. */
  const learn = async (claim: Claim, known: Known, from: Position | null): Promise<void> => {
    const { now, choice } = claim;
    const found = await looks.due(from, now, choice.only, mostNew);
    if (found === null) await lookUpTenants(known);
    else for (const line of found) known.lines.add(line);
    known.seen = { scheduledFor: now, id: '' };
  };

  const takeFrom = async (claim: Claim, { lines }: Known, line: WaitingLine, most: number) => {
    const { taken, due } = await claims.ofLine(claim, line, most);
    const last = taken.at(-1);
    lines.served(line, last === undefined ? null : { scheduledFor: last.scheduled_for, id: last.id }, due < most);
    return taken;
  };

  const takeTurns = async (claim: Claim, known: Known): Promise<JobRow[]> => {
    const { limit, now, choice } = claim;
    const { lines } = known;
    const mayServe = (lane: string): boolean =>
      (choice.only === null || choice.only.includes(lane)) && !choice.full.includes(lane);
    const rows: JobRow[] = [];
    let misses = 0;
    try {
      while (rows.length < limit) {
        const turn = lines.next(mayServe);
        if (turn === null) break;
        if (turn.kind === 'tenant') {
          const unknown = [turn, ...lines.unknownAfter(turn.tenantId, lookedUpAhead)];
          await Promise.all(
            unknown.map(async ({ tenantId, last }) => {
              const found = await looks.lines(tenantId, last, now, choice);
              lines.setLines(tenantId, found.lines, found.isPartial);
            }),
          );
          continue;
        }
        const share = Math.floor((limit - rows.length) / lines.size);
        const taken = await takeFrom(claim, known, turn.line, Math.max(share, 1));
        rows.push(...taken);
        if (taken.length === 0) misses += 1;
        if (misses !== mostMisses) continue;
        misses = 0;
        await lookUpTenants(known);
      }
    } catch (error) {
      if (rows.length === 0) throw error;
      // Those that were taken are the worker's. What is left it looks for again.
      known.seen = null;
      lines.clear();
    }
    return rows;
  };

  const takeDue = async (claim: Claim, known: Known): Promise<readonly JobRow[]> => {
    const { dueSince, full } = claim.choice;
    if (dueSince === null) known.lines.clear();
    const from = startOf(known.seen, dueSince);
    if (known.lines.isEmpty && full.length === 0) {
      const { taken, due } = await claims.all(claim, from);
      if (due <= claim.limit) {
        known.seen = { scheduledFor: claim.now, id: '' };
        return taken;
      }
    }
    if (known.lines.isEmpty || dueSince !== Number.POSITIVE_INFINITY) await learn(claim, known, from);
    return takeTurns(claim, known);
  };

  return async (claim: Claim): Promise<readonly JobRow[]> => {
    const due = await takeDue(claim, knownTo(claim.owner));
    const left = claim.limit - due.length;
    if (left === 0 || (storage.dialect.readsPastLocks && claim.choice.dueSince !== null)) return due;
    return [...due, ...(await claims.lapsed(claim, left))];
  };
};
