import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface WireCounter {
  /** The address that stands for the target's. */
  readonly url: string;
  /** How often somebody began to ask after an answer, over all connections: what the network's delay is paid for. */
  readonly roundTrips: () => number;
  close(): Promise<void>;
}

/** A TCP proxy on loopback that counts round trips. */
export const startWireCounter = async (target: string): Promise<WireCounter> => {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let trips = 0;
  const server = createServer({ noDelay: true }, (client) => {
    const upstream = connect({ host: hostname, port: Number(port), noDelay: true });
    let asking = false;
    client.on('data', (data) => {
      if (!asking) trips += 1;
      asking = true;
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      asking = false;
      client.write(data);
    });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = new URL(target);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    roundTrips: () => trips,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};
