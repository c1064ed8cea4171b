import type { Connection, Session } from '../session.ts';

const noteAfterMs = 5_000;

/**
 * Says once that a run has not begun: perhaps nobody is there to execute it. To be disposed when the run is not
 * followed any more.
 */
export const noteWhileQueued = ({ terminal }: Session, { client }: Connection, runId: string): Disposable => {
  const look = async (): Promise<void> => {
    const { body } = await client.runs.get({ params: { runId } });
    if (body.status === 'Queued')
      terminal.note(
        terminal.noteStyle.dim(
          `Run ${runId} is still queued. It starts when its turn has come and a service that works on jobs (Service:Scheduling:RunWorker) runs on this store.`,
        ),
      );
  };
  // Who follows the run is told of any failure by the stream of its events.
  const timer = setTimeout(() => void look().catch(() => undefined), noteAfterMs).unref();
  return { [Symbol.dispose]: () => clearTimeout(timer) };
};
