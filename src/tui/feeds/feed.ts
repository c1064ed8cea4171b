import type { Client } from '../../client/client.ts';
import { passesByItself, pause } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import type { ScreenStore } from '../store.ts';

export interface FeedContext {
  readonly client: Client;
  readonly store: ScreenStore;
  /** Aborted when what it feeds has left the screen. */
  readonly signal: AbortSignal;
}

/** Reads from the service for as long as something on the screen needs it. */
export type Feed = (context: FeedContext) => Promise<void>;

const longestDelayMs = 5_000;

const tell = ({ store }: FeedContext, lost: string | null): void => {
  if (store.get().lost !== lost) store.dispatch({ type: 'link', lost });
};

/**
 * Looks again and again, `intervalMs` after each answer. Where the service cannot be reached the screen says so, and it
 * is tried again ever more rarely; `look` returns false to end.
 */
export const polling =
  (intervalMs: (context: FeedContext) => number, look: (context: FeedContext) => Promise<boolean>): Feed =>
  async (context) => {
    let failures = 0;
    for (;;) {
      try {
        const goesOn = await look(context);
        tell(context, null);
        failures = 0;
        if (!goesOn) return;
      } catch (error) {
        context.signal.throwIfAborted();
        if (!(error instanceof AcpError)) throw error;
        failures += 1;
        const { message } = error;
        tell(context, passesByItself(error) ? `${message} Trying again.` : message);
      }
      await pause(Math.min(intervalMs(context) * 2 ** Math.min(failures, 5), longestDelayMs), context.signal);
    }
  };
