import { passesByItself } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import { askedText } from '../state/asked.ts';
import { type Feed, polling } from './feed.ts';

const retryMs = 1_000;

/** What a run was asked, read once: it does not change. */
export const askedOf = (runId: string): Feed =>
  polling(
    () => retryMs,
    async ({ client, store, signal }) => {
      const text = await client.runs.input({ params: { runId }, signal }).then(
        ({ body }) => askedText(body.messages),
        (error: unknown) => {
          // Not recorded, gone, or not for this caller: the row says what else there is.
          if (error instanceof AcpError && !passesByItself(error)) return '';
          throw error;
        },
      );
      store.dispatch({ type: 'asked', runId, text });
      return false;
    },
  );
