import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface RoundRobinProxy {
  readonly url: string;
  /** Which of the targets answered how many requests. */
  readonly answered: ReadonlyMap<string, number>;
  /** Requests go to these from now on, one after another. */
  use(targets: readonly string[]): void;
  /** Cuts every answer that is on its way, as a proxy does that is restarted. */
  cut(): void;
  close(): Promise<void>;
}

/** Told of each answer: the target that it came from, what it was asked, and the head of what it said. */
type Observe = (target: string, request: IncomingMessage, answer: IncomingMessage) => void;

/** Headers that are about one connection (RFC 9110 section 7.6.1). */
const hopByHop = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Of the headers of a message as they came, those that a proxy passes on. */
export const endToEnd = (headers: readonly string[]): string[] => {
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2)
    if (!hopByHop.has((headers[index] ?? '').toLowerCase())) kept.push(headers[index] ?? '', headers[index + 1] ?? '');
  return kept;
};

/**
 * A plain proxy on loopback that sends each request to the next target, whoever asks: requests of one conversation meet
 * different processes. A target that takes no connection is passed over, as a load balancer does; a request that had reached
 * one is never sent twice.
 */
export const startRoundRobinProxy = async (
  first: readonly string[],
  observe: Observe = () => undefined,
): Promise<RoundRobinProxy> => {
  const agent = new Agent({ keepAlive: true });
  const answered = new Map<string, number>();
  const open = new Set<ServerResponse>();
  let targets = first;
  let turn = 0;

  const pass = (incoming: IncomingMessage, outgoing: ServerResponse, triesLeft: number): void => {
    const target = targets[turn % Math.max(targets.length, 1)];
    turn += 1;
    if (target === undefined || triesLeft === 0) {
      outgoing.writeHead(502).end();
      return;
    }
    const { hostname, port } = new URL(target);
    const upstream = request({
      agent,
      hostname,
      port,
      method: incoming.method,
      path: incoming.url,
      headers: endToEnd(incoming.rawHeaders),
    });
    let connected = false;
    upstream.once('socket', (socket) => {
      // A connection that is used again stands already.
      if (!socket.connecting) connected = true;
      else
        socket.once('connect', () => {
          connected = true;
        });
    });
    upstream.once('response', (answer) => {
      answered.set(target, (answered.get(target) ?? 0) + 1);
      observe(target, incoming, answer);
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders));
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.once('error', () => outgoing.destroy());
      answer.once('aborted', () => outgoing.destroy());
    });
    upstream.once('error', ({ message }) => {
      incoming.unpipe(upstream);
      if (!connected && incoming.readableDidRead === false) pass(incoming, outgoing, triesLeft - 1);
      else if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(502).end(`${target} did not answer: ${message}`);
    });
    outgoing.once('close', () => {
      upstream.destroy();
      // A target may answer before it has read the body. Left lying, it would keep the next request of its connection waiting.
      incoming.unpipe(upstream);
      incoming.resume();
    });
    upstream.once('socket', (socket) => {
      const send = () => incoming.pipe(upstream);
      if (socket.connecting) socket.once('connect', send);
      else send();
    });
  };

  const server = createServer((incoming, outgoing) => {
    open.add(outgoing);
    outgoing.once('close', () => open.delete(outgoing));
    pass(incoming, outgoing, targets.length);
  });
  // Clients close what they no longer use: closed here, a connection could take a request with it.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answered,
    use(next) {
      targets = next;
    },
    cut() {
      for (const answer of open) answer.destroy();
    },
    async close() {
      server.closeAllConnections();
      agent.destroy();
      server.close();
      await once(server, 'close');
    },
  };
};
