import type { LazyUnit } from './batched-writes.ts';
import { type CommitPath, enoughUnits, gather } from './commit-queue.ts';
import type { CommitLanesOf, Condense, UnitResult } from './dialect.ts';
import type { Statement } from './statement.ts';

// A commit that takes so many times what commits take just now waits for a disk or a lock: others do not wait with it. Where
// all take long, for want of processors, further lanes would only make the groups smaller.
const stallFactor = 4;
const leastStallMs = 25;
// What a group waits for a lock.
const mostStallMs = 100;
// The mean follows the last commits: each new one counts for so much of it.
const weightOfLast = 1 / 8;

const done: UnitResult = { ok: true };

interface Collected {
  readonly unit: LazyUnit;
  readonly statements: readonly Statement[];
}

/**
 * Group commit in several transactions at once, for a database with several writers. One at a time while they are quick,
 * which makes the groups large; a further one when the last does not come back. What a unit enqueues again while it is
 * being written waits for that, so that the order of each stands.
 */
export class CommitLanes implements CommitPath {
  readonly #lanes: CommitLanesOf;
  #pending: LazyUnit[] = [];
  readonly #writing = new Set<LazyUnit>();
  readonly #flights = new Set<Promise<void>>();
  /** For locks that others hold. */
  readonly #waits = new Set<Promise<void>>();
  #lastStart = 0;
  #usualMs = 0;
  #scheduled = false;
  #stallTimer: NodeJS.Timeout | null = null;
  #closed = false;
  #condense: Condense = (statements) => statements;

  constructor(lanes: CommitLanesOf) {
    this.#lanes = lanes;
  }

  condenseBy(condense: Condense): void {
    this.#condense = condense;
  }

  enqueue(unit: LazyUnit): void {
    if (this.#closed) {
      unit.failed(new Error('The store is closed.'));
      return;
    }
    this.#pending.push(unit);
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#lanes.hasten();
    while (this.#pending.length + this.#flights.size + this.#waits.size > 0) {
      this.#start();
      await Promise.race([...this.#flights, ...this.#waits]);
    }
    if (this.#stallTimer !== null) clearTimeout(this.#stallTimer);
  }

  #schedule(): void {
    if (this.#scheduled || this.#pending.length === 0) return;
    if (this.#flights.size === 0 || this.#pending.length >= enoughUnits) {
      this.#scheduled = true;
      gather(
        () => this.#pending.length,
        () => this.#start(),
      );
    } else
      this.#stallTimer ??= setTimeout(() => {
        // Where this process had no time, the answer is here and has not been read.
        setImmediate(() => this.#stalled());
      }, this.#stallMs);
  }

  get #stallMs(): number {
    return Math.min(mostStallMs, Math.max(leastStallMs, this.#usualMs * stallFactor));
  }

  #stalled(): void {
    this.#stallTimer = null;
    if (this.#scheduled) return;
    // A lane that began a moment ago has its time, too.
    if (this.#flights.size > 0 && performance.now() - this.#lastStart < this.#stallMs) this.#schedule();
    else this.#start();
  }

  #took(ms: number): void {
    this.#usualMs += (Math.min(ms, this.#stallMs) - this.#usualMs) * weightOfLast;
  }

  #start(): void {
    this.#scheduled = false;
    if (this.#flights.size >= this.#lanes.most) return;
    const units: LazyUnit[] = [];
    const waiting: LazyUnit[] = [];
    for (const unit of this.#pending) (this.#writing.has(unit) ? waiting : units).push(unit);
    if (units.length === 0) return;
    this.#pending = waiting;
    const startedAt = performance.now();
    this.#lastStart = startedAt;
    const flight = this.#fly(units).finally(() => {
      this.#flights.delete(flight);
      this.#took(performance.now() - startedAt);
      this.#schedule();
    });
    this.#flights.add(flight);
    this.#schedule();
  }

  async #fly(units: readonly LazyUnit[]): Promise<void> {
    const collected: Collected[] = [];
    for (const unit of units)
      try {
        collected.push({ unit, statements: unit.collect() });
        this.#writing.add(unit);
      } catch (error) {
        unit.failed(error);
      }
    const writing = collected.filter(({ statements }) => statements.length > 0);
    const results = await this.#commit(writing.map(({ statements }) => statements));
    let index = 0;
    for (const { unit, statements } of collected) {
      const result = statements.length === 0 ? done : (results[index++] ?? done);
      if (result instanceof Promise) this.#late(unit, result);
      else this.#end(unit, result);
    }
  }

  /** Others go on meanwhile; what the unit enqueues waits for it. */
  #late(unit: LazyUnit, result: Promise<UnitResult>): void {
    const end = result.then((value) => {
      this.#waits.delete(end);
      this.#end(unit, value);
      this.#schedule();
    });
    this.#waits.add(end);
  }

  #end(unit: LazyUnit, result: UnitResult): void {
    this.#writing.delete(unit);
    if (result.ok) unit.committed();
    else unit.failed(result.error);
  }

  async #commit(units: readonly (readonly Statement[])[]): Promise<readonly (UnitResult | Promise<UnitResult>)[]> {
    if (units.length === 0) return [];
    try {
      return await this.#lanes.commit(units, this.#condense);
    } catch (error) {
      return units.map(() => ({ ok: false, error }));
    }
  }
}
