import { passesByItself } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import { askedText } from '../state/asked.ts';
import { type Feed, polling } from './feed.ts';

const scoresIntervalMs = 2_000;
const sessionIntervalMs = 500;
const askedRetryMs = 1_000;

/** The scores of the run on screen. */
export const scoresOf = (runId: string): Feed =>
  polling(
    () => scoresIntervalMs,
    async ({ client, store, signal }) => {
      const { body: scores } = await client.scores.list({ params: { runId }, signal });
      store.dispatch({ type: 'scores', runId, scores });
      return true;
    },
  );

/** Whether the session of a run that waits has gone on since: then its calls wait no more. */
export const sessionOf = (runId: string, sessionId: string): Feed =>
  polling(
    () => sessionIntervalMs,
    async ({ client, store, signal }) => {
      const newest = await client.runs.list({ query: { sessionId, take: 1 }, signal }).catch((error: unknown) => {
        // Who may read one run but not list them answers without this hint, and is told when it is too late.
        if (error instanceof AcpError && error.code === 'run-not-allowed') return null;
        throw error;
      });
      if (newest === null) return false;
      const wentOn = newest.body[0] !== undefined && newest.body[0].id !== runId;
      if (wentOn) store.dispatch({ type: 'went-on', runId });
      return !wentOn;
    },
  );

/** What a run was asked, read once: it does not change. */
export const askedOf = (runId: string): Feed =>
  polling(
    () => askedRetryMs,
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
