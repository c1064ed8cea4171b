import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface CuttingProxy {
  readonly url: string;
  /** How many connections were made. */
  readonly connections: () => number;
  close(): Promise<void>;
}

/**
 * A TCP proxy on loopback that cuts each connection after so many bytes of the answer: the first number is for the first
 * connection, and so on; connections beyond the list are left alone. A zero refuses the connection.
 */
export const startCuttingProxy = async (target: string, limits: readonly number[]): Promise<CuttingProxy> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let count = 0;
  const server = createServer((client) => {
    const limit = limits[count] ?? Number.POSITIVE_INFINITY;
    count += 1;
    if (limit === 0) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => sockets.delete(socket));
    }
    let passed = 0;
    client.pipe(upstream);
    upstream.on('data', (chunk: Buffer) => {
      const rest = chunk.subarray(0, Math.max(0, limit - passed));
      passed += chunk.length;
      client.write(rest);
      if (passed >= limit) client.destroySoon();
    });
    upstream.once('close', () => client.destroySoon());
    client.once('close', () => upstream.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections: () => count,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};
