import pg from 'pg';
import type { ListeningConnection } from './announcements.ts';

/** Opens a connection of its own, outside of any pool; `lost` is called once, unless it was destroyed before. */
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
  return {
    query: (sql, parameters) => client.query(sql, [...parameters]),
    destroy() {
      isOver = true;
      // A polite end waits for a server that may not answer any more.
      client.connection.stream.destroy();
    },
  };
};
