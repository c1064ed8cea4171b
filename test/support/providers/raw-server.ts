import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RawServer {
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A server on loopback whose every answer is written by the test; each ends when its connection does. */
export const startRawServer = async (answer: (response: ServerResponse) => void): Promise<RawServer> => {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => answer(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};

/** Writes the text over and over, as fast as it is taken, until the connection is closed. */
export const writeForever = (response: ServerResponse, text: string, pauseMs = 0): void => {
  const step = (): void => {
    if (response.destroyed) return;
    const isTaken = response.write(text);
    if (pauseMs > 0) setTimeout(step, pauseMs);
    else if (isTaken) setImmediate(step);
    else response.once('drain', step);
  };
  step();
};
