import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Where a connection is cut, seen from what is sent on it. */
export type Cut =
  /** The server never gets it. */
  | 'before'
  /** The server has answered, and nobody hears it. */
  | 'after'
  /** A part of the answer comes. */
  | 'within'
  /** The connection is gone, and the server gets it some time later all the same. */
  | 'late';

export interface CuttingProxy {
  /** The address of the server, by way of this proxy. */
  readonly url: string;
  /** Asked for each piece that a client sends; null: it is passed on. */
  plan: (piece: Buffer) => Cut | null;
  readonly cuts: number;
  /** Asked for each piece: true stops it on its way, and what its client sends after it, until `letGo`. */
  holds: (piece: Buffer) => boolean;
  readonly isHolding: boolean;
  letGo(): void;
  /** Cuts all that is open now; nothing is let in until `open`. */
  shut(): void;
  /** What is open stays so; nothing more is let in until `open`. */
  refuse(): void;
  /** Whoever connects from now on comes to this server. */
  lead(server: string): void;
  open(): void;
  close(): Promise<void>;
}

const longestLateMs = 40;

const addressOf = (url: string) => {
  const { hostname, port, searchParams } = new URL(url);
  const number = port === '' ? 5432 : Number(port);
  const host = searchParams.get('host');
  return host === null ? { host: hostname, port: number } : { path: `${host}/.s.PGSQL.${number}` };
};

const bindMessage = 'B'.charCodeAt(0);
const longestBound = 80;

/** Whether a client sends a commit by itself: by its text, or as the statement without values that its session has kept. */
export const isCommitAlone = (piece: Buffer): boolean =>
  piece.includes('\u0000commit\u0000')
    ? !piece.includes('isolation level')
    : piece[0] === bindMessage && piece.length < longestBound;

/** Stands between a process and its server of PostgreSQL, and cuts connections where a test says so. */
export const startCuttingProxy = async (server: string): Promise<CuttingProxy> => {
  const sockets = new Set<Socket>();
  let isShut = false;
  let cuts = 0;
  const held: (() => void)[] = [];
  let address = addressOf(server);
  const keep = (socket: Socket): Socket => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined));
    return socket;
  };
  const listener = createServer((accepted) => {
    const client = keep(accepted);
    if (isShut) {
      client.destroy();
      return;
    }
    const upstream = keep(connect(address));
    let isCut = false;
    const cut = (kind: Cut, piece: Buffer): void => {
      isCut = true;
      cuts += 1;
      const both = (): void => {
        client.destroy();
        upstream.destroy();
      };
      if (kind === 'before') {
        both();
        return;
      }
      upstream.once('data', (answer: Buffer) => {
        if (kind === 'within') client.write(answer.subarray(0, Math.ceil(answer.length / 2)), both);
        else both();
      });
      if (kind === 'late') client.destroy();
      setTimeout(() => upstream.write(piece), kind === 'late' ? Math.random() * longestLateMs : 0);
    };
    client.on('data', (piece: Buffer) => {
      if (!isCut && proxy.holds(piece)) {
        client.pause();
        held.push(() => {
          upstream.write(piece);
          client.resume();
        });
        return;
      }
      const kind = isCut ? null : proxy.plan(piece);
      if (kind !== null) cut(kind, piece);
      else if (!isCut) upstream.write(piece);
    });
    upstream.on('data', (answer) => {
      if (!isCut) client.write(answer);
    });
    client.on('close', () => {
      if (!isCut) upstream.destroy();
    });
    upstream.on('close', () => client.destroy());
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const url = new URL(server);
  url.searchParams.delete('host');
  url.hostname = '127.0.0.1';
  url.port = String((listener.address() as { port: number }).port);
  const destroyAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const proxy = {
    url: url.href,
    plan: (_piece: Buffer): Cut | null => null,
    get cuts() {
      return cuts;
    },
    holds: (_piece: Buffer): boolean => false,
    get isHolding() {
      return held.length > 0;
    },
    letGo() {
      for (const go of held.splice(0)) go();
    },
    shut() {
      isShut = true;
      destroyAll();
    },
    refuse() {
      isShut = true;
    },
    lead(to: string) {
      address = addressOf(to);
    },
    open() {
      isShut = false;
    },
    async close() {
      const closed = once(listener, 'close');
      listener.close();
      destroyAll();
      await closed;
    },
  };
  return proxy;
};
