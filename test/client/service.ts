import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type Client, createClient } from '../../src/client/client.ts';
import { httpTransport } from '../../src/client/http-transport.ts';
import { inProcessTransport } from '../../src/client/in-process-transport.ts';
import type { Transport } from '../../src/client/transport.ts';
import { loadConfig } from '../../src/core/config/index.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { createService } from '../../src/http/service.ts';

const script = `
rules:
  - when: { message: count }
    reply: { text: "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20", chunkSize: 3, delay: 5ms }
  - when: { message: stall }
    reply: { stall: true }
  - reply: { text: Hello }
`;

export const agent = { name: 'hello', model: { provider: 'demo', model: 'demo-1' } };

/** Everything that an iteration yields. */
export const collect = async <T>(source: AsyncIterable<T>): Promise<T[]> => {
  const items: T[] = [];
  for await (const item of source) items.push(item);
  return items;
};

export interface TestService {
  readonly url: string;
  /** Clients over both transports, by name. */
  readonly clients: readonly (readonly ['http' | 'in process', Client, Transport])[];
  readonly http: Client;
}

/** The real service on a memory store, on a free port of the loopback address. */
export const startService = async (
  t: Pick<TestContext, 'after'>,
  set: readonly string[] = [],
): Promise<TestService> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-client-'));
  writeFileSync(join(folder, 'script.yaml'), script);
  const args = [
    'Service:Persistence:Provider=Memory',
    'Service:Providers:Scripted:demo:File=script.yaml',
    'Host:Url=http://127.0.0.1:0',
    ...set,
  ];
  const config = loadConfig({ args, env: {}, cwd: folder });
  const service = await createService({ config, log: silentLogger, cwd: folder });
  const { url } = await service.listen();
  const overHttp = httpTransport({ url });
  const inProcess = inProcessTransport(service.dispatch, service.localCaller);
  t.after(async () => {
    await overHttp.close();
    await service.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const http = createClient(overHttp);
  const clients = [
    ['http', http, overHttp],
    ['in process', createClient(inProcess), inProcess],
  ] as const;
  return { url, clients, http };
};
