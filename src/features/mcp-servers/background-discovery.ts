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

// A server whose answers cannot be read is left out of one round, then of two, four, and so on, up to so many.
const maxLeftOut = 12;

// Nobody waits for them, and a start with fifty servers keeps the memory that the lists of all at once take.
const looksAtOnce = 4;

/** Asks all enabled servers at its start and again and again, but those whose list is said to stay as it is. */
export const backgroundDiscovery = (deps: BackgroundDeps): BackgroundService => {
  const { table, discovery, clock, now } = deps;
  let timer: Timer | null = null;
  let stopping = new AbortController();
  let underWay: Promise<void> | null = null;
  /** Servers, as they were saved, whose last answers could not be read, and the rounds that they are left out of. */
  const unreadable = new Map<string, { readonly savedAt: number; readonly next: number; leftOut: number }>();

  /** Saved again it is asked again. */
  const isLeftOut = ({ id, updated_at: savedAt }: McpServerRow): boolean => {
    const known = unreadable.get(id);
    if (known === undefined || known.savedAt !== savedAt || known.leftOut === 0) return false;
    known.leftOut -= 1;
    return true;
  };
  const look = async (row: McpServerRow, signal: AbortSignal, mayAct: () => boolean): Promise<void> => {
    const { id, updated_at: savedAt } = row;
    const isUnreadable = await discovery.look(row, { timeoutMs: deps.timeoutMs, signal, mayKeep: mayAct });
    const known = unreadable.get(id);
    unreadable.delete(id);
    if (!isUnreadable) return;
    const leftOut = known?.savedAt === savedAt ? known.next : 1;
    unreadable.set(id, { savedAt, leftOut, next: Math.min(leftOut * 2, maxLeftOut) });
  };

  const round = async (mayAct: () => boolean, signal: AbortSignal): Promise<void> => {
    await deps.prepare();
    const due = [...table.rows.values()].filter(
      (row) =>
        row.enabled === 1 &&
        !isLeftOut(row) &&
        (row.state !== 'Connected' || row.fresh_until === null || row.fresh_until <= now() || deps.lacks(row)),
    );
    await sideBySide(due, looksAtOnce, async (row) => {
      if (signal.aborted || !mayAct()) return;
      await look(row, signal, mayAct).catch((error: unknown) =>
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
