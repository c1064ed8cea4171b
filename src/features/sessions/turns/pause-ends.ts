import type { Clock, Timer } from '../../../core/clock.ts';

export interface PauseEndDeps {
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

// Decisions made in this process are passed on at once; those of other instances are found by looking.
const longestWaitMs = 10_000;

interface Watched {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly watchers: Map<string, () => void>;
  readonly blockedUntil: Parameters<PauseEnds['watch']>[4];
  timer: Timer | null;
}

/** Runs that came after one that paused, and when it is their turn. */
export const createPauseEnds = ({ clock, log }: PauseEndDeps) => {
  const sessions = new Map<string, Watched>();
  const keyOf = (tenantId: string, sessionId: string) => `${tenantId}\n${sessionId}`;

  const forget = (key: string, watched: Watched): void => {
    watched.timer?.stop();
    if (sessions.get(key) === watched) sessions.delete(key);
  };

  /** Called when a pause of the session has ended in this process. */
  const ended = (tenantId: string, sessionId: string): void => {
    const key = keyOf(tenantId, sessionId);
    const watched = sessions.get(key);
    if (watched === undefined) return;
    forget(key, watched);
    for (const over of watched.watchers.values()) over();
  };

  const look = async (watched: Watched): Promise<void> => {
    const { tenantId, sessionId, blockedUntil } = watched;
    let waitMs = longestWaitMs;
    try {
      const until = await blockedUntil(tenantId, sessionId);
      if (sessions.get(keyOf(tenantId, sessionId)) !== watched) return;
      if (until === null) return ended(tenantId, sessionId);
      waitMs = Math.min(Math.max(until - clock.now(), 1), longestWaitMs);
    } catch (error) {
      log.error({ tenantId, sessionId, error }, 'Whether a session still waits for a decision could not be read');
      if (sessions.get(keyOf(tenantId, sessionId)) !== watched) return;
    }
    watched.timer?.stop();
    watched.timer = clock.after(waitMs, () => look(watched)).unref();
  };

  return {
    ended,
    /**
     * Calls back once, when the session no longer waits for its mailbox; soon, when it does not wait by now. Another
     * watch of the same run replaces the first. Callbacks come in the order of their watches. `blockedUntil`: until when
     * the session waits at most; null: it does not.
     */
    watch(
      tenantId: string,
      sessionId: string,
      runId: string,
      over: () => void,
      blockedUntil: (tenantId: string, sessionId: string) => Promise<number | null>,
    ): void {
      const key = keyOf(tenantId, sessionId);
      const watched = sessions.get(key) ?? { tenantId, sessionId, watchers: new Map(), blockedUntil, timer: null };
      sessions.set(key, watched);
      watched.watchers.set(runId, over);
      // The pause may have ended between the refusal and this watch.
      void look(watched);
    },
    unwatch(tenantId: string, sessionId: string, runId: string): void {
      const key = keyOf(tenantId, sessionId);
      const watched = sessions.get(key);
      watched?.watchers.delete(runId);
      if (watched?.watchers.size === 0) forget(key, watched);
    },
    close(): void {
      for (const [key, watched] of sessions) forget(key, watched);
    },
  };
};

export type PauseEnds = ReturnType<typeof createPauseEnds>;
