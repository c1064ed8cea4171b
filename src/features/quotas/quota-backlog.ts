import type { Clock } from '../../core/clock.ts';
import type { Statement } from '../../db/statement.ts';
import type { QuotaUsageRow } from '../../db/tables/quotas.ts';
import { createWriteRetry } from '../../db/write-retry.ts';
import type { QuotaUse } from '../../engine/control/index.ts';
import { type CountedRoot, monthOf, type OpenRuns } from './counted-roots.ts';
import { addedUse, noUse } from './quota-use.ts';

/** A run that counts, and that the store does not have. */
interface Unwritten {
  readonly root: CountedRoot;
  /** 1 for a run that was admitted, 0 for what only uses something. */
  readonly runs: number;
  use: QuotaUse;
  isOpen: boolean;
  /** No record brings its counters into the store: they are booked by themselves. */
  isAlone: boolean;
}

export interface BacklogDeps {
  write(statements: readonly Statement[]): Promise<void>;
  /** The statements that count a run without a row. */
  booking(runId: string, root: CountedRoot, runs: number, use: QuotaUse): readonly Statement[];
  readonly clock: Pick<Clock, 'after'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

const scopesOf = ({ agentName, day }: CountedRoot) =>
  [
    ['', 'Daily', day],
    ['', 'Monthly', monthOf(day)],
    [agentName, 'Daily', day],
    [agentName, 'Monthly', monthOf(day)],
  ] as const;

/** What counts and could not be written: counted from memory until the store has it. */
export const createQuotaBacklog = ({ write, booking, clock, log }: BacklogDeps) => {
  const unwritten = new Map<string, Unwritten>();
  /** Runs that have ended and whose counters nobody else writes. */
  const due = () => [...unwritten].filter(([, { isAlone, isOpen }]) => isAlone && !isOpen);

  const book = async (): Promise<void> => {
    for (const [runId, { root, runs, use }] of due()) {
      await write(booking(runId, root, runs, use));
      unwritten.delete(runId);
    }
  };
  const retry = createWriteRetry(clock, () => due().length > 0, book);

  return {
    add(runId: string, root: CountedRoot, runs: number, isAlone: boolean): void {
      unwritten.set(runId, { root, runs, use: noUse, isOpen: true, isAlone });
    },
    has: (runId: string): boolean => unwritten.has(runId),
    ended(runId: string, use: QuotaUse): void {
      const run = unwritten.get(runId);
      if (run === undefined) return;
      run.use = addedUse(run.use, use);
      run.isOpen = false;
      retry.schedule();
    },
    /** The store has it. */
    written: (runId: string): void => void unwritten.delete(runId),
    /** Its record will not come. */
    alone(runId: string): void {
      const run = unwritten.get(runId);
      if (run === undefined) return;
      run.isAlone = true;
      retry.schedule();
    },
    /** The rows of counters, with what they lack. */
    added(
      rows: readonly QuotaUsageRow[],
      tenantId: string,
      starts: readonly string[],
      agentNames: readonly string[] | null,
    ): readonly QuotaUsageRow[] {
      if (unwritten.size === 0) return rows;
      const counters = new Map(
        rows.map((row) => [`${row.agent_name}\n${row.period}\n${row.period_start}`, { ...row }]),
      );
      for (const { root, runs, use } of unwritten.values()) {
        if (root.tenantId !== tenantId) continue;
        for (const [agentName, period, start] of scopesOf(root)) {
          if (!starts.includes(start) || agentNames?.includes(agentName) === false) continue;
          const key = `${agentName}\n${period}\n${start}`;
          const row = counters.get(key) ?? {
            ...{ tenant_id: tenantId, agent_name: agentName, period, period_start: start },
            ...{ runs: 0, tokens: 0, cost_micros: 0, most_tokens: 0, most_cost_micros: 0, updated_at: 0 },
          };
          row.runs += runs;
          row.tokens += use.tokens;
          row.cost_micros += use.costMicros;
          row.most_tokens = Math.max(row.most_tokens, use.tokens);
          row.most_cost_micros = Math.max(row.most_cost_micros, use.costMicros);
          counters.set(key, row);
        }
      }
      return [...counters.values()].sort((a, b) =>
        a.agent_name < b.agent_name ? -1 : a.agent_name > b.agent_name ? 1 : 0,
      );
    },
    openAdded(rows: readonly OpenRuns[], tenantId: string): readonly OpenRuns[] {
      if (unwritten.size === 0) return rows;
      const open = [...unwritten.values()].filter(
        (run) => run.isOpen && run.runs > 0 && run.root.tenantId === tenantId,
      );
      return [...rows, ...open.map(({ root }) => ({ agentName: root.agentName, count: 1 }))];
    },
    /** Tries once more; what is left is lost, and told. */
    async close(): Promise<void> {
      retry.stop();
      for (const run of unwritten.values()) {
        run.isOpen = false;
        run.isAlone = true;
      }
      // In vain where the store is as it was: then the next sentence says what is lost.
      await book().catch(() => undefined);
      const lost = [...unwritten.values()];
      if (lost.length === 0) return;
      const { tokens, costMicros } = lost.map(({ use }) => use).reduce(addedUse, noUse);
      const runs = lost.reduce((sum, run) => sum + run.runs, 0);
      log.error(
        { runs, tokens, costMicros },
        'Runs could not be counted for their quotas before the end, and never will be',
      );
    },
  };
};

export type QuotaBacklog = ReturnType<typeof createQuotaBacklog>;
