import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** The way of one process to its database, on which things happen that happen on networks. */
export interface StoreLine {
  /** The database, by way of this line. */
  readonly url: string;
  /** To another server from now on; who is connected stays where they are. */
  lead(database: string): void;
  /** Every connection is reset, and nobody gets through any more. */
  cut(): void;
  /** Nothing gets through any more in either direction, and no end is told. */
  silence(): void;
  /** What the process sends arrives, and no answer comes back: from the first message on of which this is true. */
  loseAnswers(from: (message: Buffer, connection: object) => boolean): void;
  /** `late`: what was held up comes now. `forgotten`: it never does, and both ends are told with a reset. */
  mend(held: 'late' | 'forgotten'): void;
  /** Messages of the process that came after the line was mended, on connections from before. */
  readonly late: number;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  isLate: boolean;
}

type Condition = 'works' | 'cut' | 'silent' | 'deaf';

const socketOf = (database: string): string => `${new URL(database).searchParams.get('host')}/.s.PGSQL.5432`;

/** To a database on a server with a socket on this machine. */
export const openStoreLine = async (database: string): Promise<StoreLine> => {
  const { username, pathname } = new URL(database);
  let socketFile = socketOf(database);
  const pairs = new Set<Pair>();
  let condition: Condition = 'works';
  let late = 0;
  let deafFrom: ((message: Buffer, connection: object) => boolean) | null = null;

  const holdAsAgreed = ({ client, server }: Pair): void => {
    if (condition === 'silent') client.pause();
    if (condition === 'silent' || condition === 'deaf') server.pause();
  };
  const deafen = (): void => {
    condition = 'deaf';
    deafFrom = null;
    for (const pair of pairs) holdAsAgreed(pair);
  };
  const open = (client: Socket): void => {
    if (condition === 'cut') {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const pair: Pair = { client, server: connect(socketFile), isLate: false };
    pairs.add(pair);
    for (const [from, to] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      from.on('data', (piece: Buffer) => {
        if (from === client && deafFrom?.(piece, pair) === true) deafen();
        if (from === client && pair.isLate) late += 1;
        to.write(piece);
      });
      from.on('error', () => undefined);
      from.on('close', () => {
        // Where nothing gets through, that an end is gone does not, either.
        if (condition === 'silent' || (condition === 'deaf' && from === pair.server)) return;
        pairs.delete(pair);
        to.destroySoon();
      });
    }
    holdAsAgreed(pair);
  };
  const reset = (): void => {
    for (const { client, server } of pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    pairs.clear();
  };
  const listener = createServer(open);
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return {
    get late() {
      return late;
    },
    url: `postgres://${username}@127.0.0.1:${(listener.address() as AddressInfo).port}${pathname}`,
    lead(elsewhere) {
      socketFile = socketOf(elsewhere);
    },
    cut() {
      condition = 'cut';
      reset();
    },
    silence() {
      condition = 'silent';
      for (const pair of pairs) holdAsAgreed(pair);
    },
    loseAnswers(from) {
      deafFrom = from;
    },
    mend(held) {
      condition = 'works';
      deafFrom = null;
      if (held === 'forgotten') reset();
      for (const pair of pairs) {
        const { client, server } = pair;
        pair.isLate = true;
        client.resume();
        server.resume();
        // Its end came while nobody was told of it.
        if (client.destroyed || server.destroyed) {
          client.destroySoon();
          server.destroySoon();
          pairs.delete(pair);
        }
      }
    },
    async close() {
      reset();
      listener.close();
      await once(listener, 'close');
    },
  };
};
