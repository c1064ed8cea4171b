import type { Clock, Timer } from '../../../core/clock.ts';
import { tenantKey } from '../../../core/instance-state.ts';
import type { Announcements } from '../../../db/announcements.ts';

export interface PauseEndDeps {
  readonly clock: Pick<Clock, 'now' | 'after'>;
  readonly announcements: Pick<Announcements, 'announce' | 'listen'>;
  readonly log: { error(fields: Readonly<Record<string, unknown>>, message: string): void };
}

// Decisions are passed on at once, and announced to other instances; this finds what none of them hears of.
const longestWaitMs = 10_000;

interface Watched {
  readonly tenantId: string;
  readonly sessionId: string;
  readonly watchers: Map<string, () => void>;
  readonly blockedUntil: Parameters<PauseEnds['watch']>[4];
  timer: Timer | null;
}

/** Runs that came after one that paused, and when it is their turn. */
export const createPauseEnds = ({ clock, announcements, log }: PauseEndDeps) => {
  const sessions = new Map<string, Watched>();

  const forget = (key: string, watched: Watched): void => {
    watched.timer?.stop();
    if (sessions.get(key) === watched) sessions.delete(key);
  };

  /** The session does not wait any more, as far as its watchers here are concerned. */
  const over = (key: string): void => {
    const watched = sessions.get(key);
    if (watched === undefined) return;
    forget(key, watched);
    for (const callBack of watched.watchers.values()) callBack();
  };

  const look = async (watched: Watched): Promise<void> => {
    const { tenantId, sessionId, blockedUntil } = watched;
    let waitMs = longestWaitMs;
    try {
      const until = await blockedUntil(tenantId, sessionId);
      if (sessions.get(tenantKey(tenantId, sessionId)) !== watched) return;
      if (until === null) return over(tenantKey(tenantId, sessionId));
      waitMs = Math.min(Math.max(until - clock.now(), 1), longestWaitMs);
    } catch (error) {
      log.error({ tenantId, sessionId, error }, 'Whether a session still waits for a decision could not be read');
      if (sessions.get(tenantKey(tenantId, sessionId)) !== watched) return;
    }
    watched.timer?.stop();
    watched.timer = clock.after(waitMs, () => look(watched)).unref();
  };

  const lookAt = (key: string): void => {
    const watched = sessions.get(key);
    if (watched !== undefined) void look(watched);
  };
  const deaf = announcements.listen('session', {
    heard: lookAt,
    missed() {
      for (const key of sessions.keys()) lookAt(key);
    },
  });

  return {
    /** Called when a pause of the session has ended in this process. */
    ended(tenantId: string, sessionId: string): void {
      const key = tenantKey(tenantId, sessionId);
      announcements.announce('session', key);
      over(key);
    },
    /**
     * Calls back once, when the session no longer waits for its mailbox; soon, when it does not wait by now. Another
     * watch of the same run replaces the first. Callbacks come in the order of their watches. `blockedUntil`: until when
     * the session waits at most; null: it does not.
     */
    watch(
      tenantId: string,
      sessionId: string,
      runId: string,
      callBack: () => void,
      blockedUntil: (tenantId: string, sessionId: string) => Promise<number | null>,
    ): void {
      const key = tenantKey(tenantId, sessionId);
      const watched = sessions.get(key) ?? { tenantId, sessionId, watchers: new Map(), blockedUntil, timer: null };
      sessions.set(key, watched);
      watched.watchers.set(runId, callBack);
      // The pause may have ended between the refusal and this watch.
      void look(watched);
    },
    unwatch(tenantId: string, sessionId: string, runId: string): void {
      const key = tenantKey(tenantId, sessionId);
      const watched = sessions.get(key);
      watched?.watchers.delete(runId);
      if (watched?.watchers.size === 0) forget(key, watched);
    },
    close(): void {
      deaf();
      for (const [key, watched] of sessions) forget(key, watched);
    },
  };
};

export type PauseEnds = ReturnType<typeof createPauseEnds>;
