import type { Clock, Timer } from '../../core/clock.ts';
import type { StoreTable } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { BackgroundService } from '../../scheduler/background-service.ts';
import { type Discovery, sideBySide } from './discovery.ts';

export interface BackgroundDeps {
  /** Before each round. */
  readonly prepare: () => Promise<void>;
  readonly table: Pick<StoreTable<McpServerRow>, 'rows'>;
  readonly discovery: Discovery;
  /** Whether a server has no credential: one that was reached before is not left as it is then. */
  readonly lacks: (row: McpServerRow) => boolean;
  readonly clock: Pick<Clock, 'every'>;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
}

// Nobody waits for them, and a start with fifty servers keeps the memory that the lists of all at once take.
const looksAtOnce = 4;

/** Asks all enabled servers at its start and again and again, but those whose list is said to stay as it is. */
export const backgroundDiscovery = (deps: BackgroundDeps): BackgroundService => {
  const { table, discovery, clock, now } = deps;
  let timer: Timer | null = null;
  let stopping = new AbortController();
  let underWay: Promise<void> | null = null;

  const round = async (mayAct: () => boolean, signal: AbortSignal): Promise<void> => {
    await deps.prepare();
    const due = [...table.rows.values()].filter(
      (row) =>
        row.enabled === 1 &&
        (row.state !== 'Connected' || row.fresh_until === null || row.fresh_until <= now() || deps.lacks(row)),
    );
    await sideBySide(due, looksAtOnce, async (row) => {
      if (signal.aborted || !mayAct()) return;
      await discovery.look(row, { timeoutMs: deps.timeoutMs, signal, mayKeep: mayAct }).catch((error: unknown) =>
        // The others have nothing to do with it.
        deps.log.error({ tenantId: row.tenant_id, server: row.name, error }, 'An MCP server was not looked at'),
      );
    });
  };
  const begin = (mayAct: () => boolean): Promise<void> => {
    // A round that takes longer than the interval is not joined by another.
    underWay ??= round(mayAct, stopping.signal)
      .catch((error: unknown) => deps.log.error({ error }, 'MCP servers could not be asked for their tools'))
      .finally(() => {
        underWay = null;
      });
    return underWay;
  };

  return {
    start(mayAct) {
      stopping = new AbortController();
      timer?.stop();
      timer = clock.every(deps.intervalMs, () => begin(mayAct));
      void begin(mayAct);
    },
    async stop() {
      timer?.stop();
      timer = null;
      stopping.abort();
      await underWay;
    },
  };
};
