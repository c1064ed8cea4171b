import type { Clock, Timer } from '../../core/clock.ts';
import type { Logger } from '../../core/logger.ts';
import type { ContentStore } from '../../db/content/store.ts';
import type { BackgroundService } from '../../scheduler/background-service.ts';

// What is loose waits an hour; whether it then waits some minutes more does not matter.
const turnMs = 600_000;

/** Removes what processes that died were receiving, and what was replaced, where several processes keep contents. */
export const looseContents = (
  content: Pick<ContentStore, 'removeLoose'>,
  { clock, log }: { readonly clock: Clock; readonly log: Pick<Logger, 'info' | 'warn'> },
): BackgroundService => {
  let timer: Timer | null = null;
  let stopping = new AbortController();
  let turn: Promise<void> = Promise.resolve();
  const remove = (): Promise<void> => {
    turn = content.removeLoose(stopping.signal).then(
      (removed) => {
        if (removed > 0) log.info({ removed }, 'What was left of uploads and of replaced attachments was removed');
      },
      (error: unknown) => log.warn({ error }, 'What is left of uploads and of replaced attachments is still there'),
    );
    return turn;
  };
  return {
    start(mayAct) {
      if (timer !== null) return;
      stopping = new AbortController();
      timer = clock.every(turnMs, () => (mayAct() ? remove() : undefined));
    },
    async stop() {
      timer?.stop();
      timer = null;
      stopping.abort();
      await turn;
    },
  };
};
