import pg from 'pg';
import { withTimeLimit } from '../../core/time-limit.ts';
import type { ListeningConnection } from './announcements.ts';

/** The driver's declarations leave the server's name for the connection out. */
type Client = pg.Client & { readonly processID?: number | null };

// Packets may be lost from the moment on in which the connection is there.
const answerMs = 5000;

/**
 * Opens a connection of its own, outside of any pool. Throws where a pooler is in between, which gives another number for
 * the connection than the server does; `lost` is called once, unless it was destroyed before. */
export const connectListening = async (
  config: pg.ClientConfig,
  { heard, lost }: { heard(text: string): void; lost(error: unknown): void },
): Promise<ListeningConnection> => {
  const client = new pg.Client({ ...config, application_name: 'acp announcements', keepAlive: true });
  let isOver = false;
  const over = (error: unknown): void => {
    if (isOver) return;
    isOver = true;
    lost(error);
  };
  client.on('notification', ({ payload }) => {
    if (payload !== undefined) heard(payload);
  });
  client.on('error', over);
  client.on('end', () => over(new Error('The server has closed the connection.')));
  await client.connect();
  const destroy = (): void => {
    isOver = true;
    // A polite end waits for a server that may not answer any more.
    client.connection.stream.destroy();
  };
  const { rows } = await withTimeLimit(answerMs, () => client.query('select pg_backend_pid() as pid')).catch(
    (error: unknown) => {
      destroy();
      throw error;
    },
  );
  if (rows[0]?.pid !== (client as Client).processID) {
    // What a connection is told to remember would stay with whoever gets it next: a subscription, a lock.
    destroy();
    throw new Error(
      'A pooler answers in place of the server: set Service:Persistence:Postgres:DirectConnectionString.',
    );
  }
  return {
    query: (sql, parameters) => client.query(sql, [...parameters]),
    destroy,
  };
};
