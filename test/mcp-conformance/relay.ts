import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { endToEnd } from '../support/round-robin-proxy.ts';

export interface Relay {
  readonly url: string;
  /** Where requests go from now on. */
  use(target: string): void;
  close(): Promise<void>;
}

interface Call {
  readonly method?: unknown;
  readonly params?: { readonly name?: unknown; readonly arguments?: Readonly<Record<string, unknown>> };
}

/** The suite calls its tools without arguments, and an agent answers a message: here it is the name of the tool. */
const withMessage = (body: Buffer): Buffer => {
  let call: Call | null;
  try {
    call = JSON.parse(body.toString('utf8')) as Call | null;
  } catch {
    // What is no JSON is for the service to refuse.
    return body;
  }
  if (call?.method !== 'tools/call' || call.params === undefined) return body;
  const { name, arguments: args = {} } = call.params;
  if (args['message'] !== undefined) return body;
  return Buffer.from(JSON.stringify({ ...call, params: { ...call.params, arguments: { ...args, message: name } } }));
};

const readWhole = async (incoming: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  return Buffer.concat(parts);
};

const withLength = (headers: readonly string[], length: number): string[] => {
  const kept: string[] = [];
  for (let index = 0; index < headers.length; index += 2)
    if (headers[index]?.toLowerCase() !== 'content-length') kept.push(headers[index] ?? '', headers[index + 1] ?? '');
  return length === 0 ? kept : [...kept, 'Content-Length', String(length)];
};

/** Stands before the service, and gives each call of a tool that has no message one. All else goes through as it is. */
export const startRelay = async (): Promise<Relay> => {
  let target = '';

  const pass = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const body = withMessage(await readWhole(incoming));
    const { hostname, port } = new URL(target);
    const upstream = request({
      hostname,
      port,
      method: incoming.method,
      path: incoming.url,
      headers: withLength(endToEnd(incoming.rawHeaders), body.length),
    });
    upstream.once('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, endToEnd(answer.rawHeaders));
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      answer.once('error', () => outgoing.destroy());
    });
    upstream.once('error', () => outgoing.destroy());
    outgoing.once('close', () => upstream.destroy());
    upstream.end(body);
  };

  const server = createServer((incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    use(next) {
      target = next;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
};
