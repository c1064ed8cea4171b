import type { Clock } from '../../core/clock.ts';
import type { Announcements } from '../../db/announcements.ts';

/** Three times as long as those who follow a run say so again: two of three may be lost. */
const forgottenAfterMs = 60_000;
/** More than anybody follows at once; what is beyond is read by those who poll. */
const mostRuns = 10_000;

/**
 * Runs that are followed from other processes, as those have said: only of them it is announced that there is more. Told to
 * all, every commit of every run would cost each process of the fleet some time.
 */
export const createRunAudience = (
  announcements: Announcements,
  { now }: Pick<Clock, 'now'>,
  isHere: (runId: string) => boolean,
) => {
  const untilMs = new Map<string, number>();

  const unlisten = announcements.listen('watch', {
    heard(runId) {
      const isNew = !untilMs.delete(runId);
      const oldest = untilMs.size < mostRuns ? undefined : untilMs.keys().next().value;
      if (oldest !== undefined) untilMs.delete(oldest);
      untilMs.set(runId, now() + forgottenAfterMs);
      // There may be more since they have read.
      if (isNew && isHere(runId)) announcements.announce('run-events', runId);
    },
    // Those who follow a run say so again.
    missed: () => undefined,
  });

  return {
    /** After a commit of the run. */
    tell(runId: string): void {
      const until = untilMs.get(runId);
      if (until === undefined) return;
      if (until > now()) announcements.announce('run-events', runId);
      else untilMs.delete(runId);
    },
    close: unlisten,
  };
};

export type RunAudience = ReturnType<typeof createRunAudience>;
