import assert from 'node:assert/strict';
import { eventually, processMs } from '../../support/eventually.ts';
import { holdingWrites, refusingWrites, type WrittenRows } from '../../support/postgres-store.ts';
import type { Storm } from './storm.ts';

/** Where writes are held in the database: what came before them, such as a read, has been done by then. */
export interface Gate extends WrittenRows {
  /** How many transactions have to stand before the gate, or in line behind one that does, for it to open. */
  readonly waiting: number;
}

/**
 * Work whose writes meet: whoever comes to the gate is held there until so many have come, and then all go on at once. So
 * it is no luck whether they collide. `meanwhile`: done before the gate opens.
 */
export const atGate = async <T>(
  { fleet }: Pick<Storm, 'fleet'>,
  { waiting, ...rows }: Gate,
  work: () => Promise<T>,
  meanwhile: () => Promise<unknown> = async () => undefined,
): Promise<T> =>
  holdingWrites(fleet.database, rows, async (held) => {
    let isOver = false;
    const working = work().finally(() => {
      isOver = true;
    });
    // It is awaited below; until then a failure is seen by its end.
    working.catch(() => undefined);
    try {
      const isFull = async () => isOver || (await held.waiting()) >= waiting;
      await eventually(`${waiting} stand before the gate of ${rows.table}`, isFull, processMs);
      assert.ok(!isOver, `the work is over, and nobody was held before the gate of ${rows.table}`);
      await meanwhile();
    } finally {
      await held.letGo();
    }
    return working;
  });

/** Work while the database refuses such rows, as it does when something is wrong with it. */
export const refusing = <T>({ fleet }: Pick<Storm, 'fleet'>, rows: WrittenRows, work: () => Promise<T>): Promise<T> =>
  refusingWrites(fleet.database, rows, work);
