import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { hex, type Message, messages, readMessage, text } from './protobuf.ts';

export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Message;
}

/** A receiver of OTLP/HTTP on loopback. */
export const openReceiver = async (t: TestContext): Promise<{ url: string; received: Received[] }> => {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ path: request.url ?? '', headers: request.headers, body: readMessage(Buffer.concat(chunks)) });
      response.setHeader('content-type', 'application/x-protobuf').end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
};

/** The exporters read the process's environment: set for one test at a time. */
export const withEnvironment = (t: TestContext, variables: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(variables)) {
    process.env[name] = value;
    t.after(() => delete process.env[name]);
  }
};

export const of = (received: readonly Received[], path: string) => received.filter((one) => one.path === path);

export const spansOf = (received: readonly Received[]): Message[] =>
  of(received, '/v1/traces')
    .flatMap(({ body }) => messages(body, 1))
    .flatMap((one) => messages(one, 2))
    .flatMap((scope) => messages(scope, 2));

/** Spans as paths of names, from the outermost that was exported. */
export const pathsOf = (received: readonly Received[]): string[] => {
  const spans = spansOf(received);
  const byId = new Map(spans.map((span) => [hex(span, 2), span]));
  const path = (span: Message): string => {
    const parent = byId.get(hex(span, 4));
    return parent === undefined ? text(span, 5) : `${path(parent)} > ${text(span, 5)}`;
  };
  return spans.map(path);
};

export const metricsOf = (received: readonly Received[]): Message[] =>
  of(received, '/v1/metrics')
    .flatMap(({ body }) => messages(body, 1))
    .flatMap((one) => messages(one, 2))
    .flatMap((scope) => messages(scope, 2));
