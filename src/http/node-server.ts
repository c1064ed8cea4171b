import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ConnectionLimits {
  /** Longest time for the request line and headers. */
  readonly headersTimeoutMs: number;
  /** Longest time for a whole request, slow bodies included. Answers may take as long as they need. */
  readonly requestTimeoutMs: number;
  /** How long an idle connection is kept. */
  readonly keepAliveTimeoutMs: number;
  /** How often the times above are looked at. */
  readonly timeoutCheckMs: number;
  readonly maxHeaderBytes: number;
  /** Connections at once; further ones are closed as they come. */
  readonly maxConnections: number;
}

export const defaultConnectionLimits: ConnectionLimits = {
  headersTimeoutMs: 20_000,
  requestTimeoutMs: 120_000,
  // Longer than the 60 s of common load balancers, so that they close first and no request meets a closed connection.
  keepAliveTimeoutMs: 72_000,
  timeoutCheckMs: 5000,
  maxHeaderBytes: 16_384,
  // Below the number of files that common systems let a process open, so that the store can always open its own.
  maxConnections: 10_000,
};

/** The address could not be taken; the message names it and says why. */
export class ListenError extends Error {
  /** System code, such as `EADDRINUSE`. */
  readonly code: string;
  readonly address: string;

  constructor(code: string, address: string, reason: string) {
    super(`Cannot listen on ${address}: ${reason}.`);
    this.name = 'ListenError';
    this.code = code;
    this.address = address;
  }
}

const listenReasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program listens there',
  EACCES: 'this user may not take that port',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'the host name is not known',
};

const listen = (server: Server, host: string, port: number): Promise<{ readonly url: string }> => {
  const name = host.includes(':') ? `[${host}]` : host;
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException): void => {
      const code = error.code ?? 'UNKNOWN';
      reject(new ListenError(code, `${name}:${port}`, listenReasons[code] ?? code));
    };
    server.once('error', onError);
    server.listen({ host, port }, () => {
      server.off('error', onError);
      resolve({ url: `http://${name}:${(server.address() as AddressInfo).port}` });
    });
  });
};

export type NodeServer = ReturnType<typeof createNodeServer>;

/** Node's server, with what a graceful stop needs. */
export const createNodeServer = (limits: ConnectionLimits, handler: RequestListener) => {
  let closing = false;
  const serve: RequestListener = (request, response) => {
    if (closing) response.setHeader('connection', 'close');
    // An answer that began before the stop has promised to keep its connection, which would outlive it.
    response.once('close', () => {
      if (closing) setImmediate(() => server.closeIdleConnections());
    });
    handler(request, response);
  };
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.keepAliveTimeoutMs,
      connectionsCheckingInterval: limits.timeoutCheckMs,
      keepAlive: true,
      // Node's own refusal would go out without any of our headers.
      requireHostHeader: false,
    },
    serve,
  );
  server.maxConnections = limits.maxConnections;
  // Whoever asks before sending a body is told to go on by the one who reads it, or is refused without sending it.
  server.on('checkContinue', serve);
  // An expectation that nobody knows may be ignored; Node would answer it without any of our headers.
  server.on('checkExpectation', serve);
  return {
    server,
    listen: (host: string, port: number) => listen(server, host, port),
    /** Takes no new connection, ends idle ones at once, and cuts the others once `graceMs` are over. */
    async close(graceMs: number): Promise<void> {
      closing = true;
      if (!server.listening) return;
      const closed = new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
};
