import type { Statement } from '../../db/statement.ts';
import type { RunRow } from '../../db/tables.ts';
import { LeaseLostError } from '../../scheduler/job-queue.ts';
import type { UnitStep } from './detached-runs.ts';
import type { LostRuns } from './lost-runs.ts';
import type { RunCancels } from './run-cancels.ts';
import type { TurnStore } from './run-turns.store.ts';
import type { RunStore } from './runs.store.ts';

/** How an item ended whose run had begun before. */
export type EarlierEnd =
  | { readonly status: 'Completed' }
  | { readonly status: 'Failed'; readonly code: string; readonly message: string };

export interface ItemRunDeps {
  readonly store: Pick<RunStore, 'get' | 'treeMembers'>;
  readonly turns: Pick<TurnStore, 'ledger'>;
  readonly lost: Pick<LostRuns, 'lose' | 'loseDescendants'>;
  readonly cancels: Pick<RunCancels, 'isAsked'>;
}

/** Ends of a run that its process brought about, and not its work. */
const cutOff: ReadonlySet<string> = new Set(['orphaned', 'shutdown']);
/** Effects of calls that may be made once more. */
const repeatable: ReadonlySet<string> = new Set(['Read', 'Write']);

const isOpen = ({ status }: Pick<RunRow, 'status'>): boolean => status === 'Running' || status === 'Queued';

const unknownEnd = (why: string): EarlierEnd => ({
  status: 'Failed',
  code: 'outcome-unknown',
  message: `The run of the item was cut off, and it is not made again: ${why}.`,
});

/** What became of the runs that an earlier attempt at a job has made for its items. */
export const createItemRuns = ({ store, turns, lost, cancels }: ItemRunDeps) => {
  /** The first call of a tree that must not be made twice. */
  const unrepeatable = async (tenantId: string, runId: string) => {
    for (const { id } of await store.treeMembers(tenantId, runId)) {
      const call = (await turns.ledger(id)).find(({ effect }) => !repeatable.has(effect));
      if (call !== undefined) return call;
    }
    return null;
  };

  const endOf = async (row: RunRow): Promise<EarlierEnd | null> => {
    // A paused run has done its part.
    if (row.status === 'Completed' || row.status === 'AwaitingApproval' || row.status === 'AwaitingInput')
      return { status: 'Completed' };
    const type = row.error_type ?? 'internal';
    if (row.status !== 'Failed' || !cutOff.has(type))
      return { status: 'Failed', code: type.replaceAll('_', '-'), message: row.error_message ?? '' };
    if (row.session_id !== null) return unknownEnd('its session may go on with it');
    const call = await unrepeatable(row.tenant_id, row.id);
    if (call === null) return null;
    return unknownEnd(`call "${call.tool_call_id}" of tool "${call.tool_name}" (${call.effect}) had begun`);
  };

  /** Closes a run that no process executes any more, with those below it. */
  const close = async (row: RunRow, assert?: UnitStep): Promise<void> => {
    await lost.loseDescendants(row, assert);
    await lost.lose(row, assert);
  };

  return {
    /**
     * How the item of this run ended; null: it may be done, since nothing that must not happen twice has happened. The run
     * is closed if it is open. `held` asserts the lease, and whoever has lost it is told so by a LeaseLostError.
     */
    async earlierEnd(tenantId: string, runId: string, held: Statement): Promise<EarlierEnd | null> {
      const row = await store.get(tenantId, runId);
      // Never opened: whoever was about to has lost the job, and with it the right to.
      if (row === undefined) return null;
      if (!isOpen(row)) return endOf(row);
      const isAsked = await cancels.isAsked(runId);
      await close(row, (stores) => stores.write([held]));
      const closed = await store.get(tenantId, runId);
      if (closed === undefined || isOpen(closed)) throw new LeaseLostError();
      // Its process has died before it heeded that.
      return isAsked ? { status: 'Failed', code: 'canceled', message: 'The run was canceled.' } : endOf(closed);
    },
    /** Closes runs of items whose job has ended without its worker. */
    async abandon(tenantId: string, runIds: readonly string[]): Promise<void> {
      for (const runId of runIds) {
        const row = await store.get(tenantId, runId);
        if (row !== undefined && isOpen(row)) await close(row);
      }
    },
  };
};

export type ItemRuns = ReturnType<typeof createItemRuns>;
