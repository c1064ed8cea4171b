import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { silentLogger } from '../../../src/core/logger.ts';
import { createConnections } from '../../../src/db/postgres/connections.ts';
import { NotConnectedError } from '../../../src/db/postgres/failure.ts';
import { postgresCondition, watchPostgres } from '../../../src/db/postgres/store-watch.ts';

test('a server that takes a new connection and never gets to it answers nobody: who comes next is told at once', {
  timeout: 20_000,
}, async (t) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, 'listening');
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const passes = (ms: number): void => {
    now += ms;
    t.mock.timers.tick(ms);
  };
  const connections = createConnections({
    address: {
      host: '127.0.0.1',
      port: (server.address() as AddressInfo).port,
      user: 'acp',
      password: 'secret',
      database: 'acp',
      ssl: false,
      tlsFiles: {},
      connectTimeoutMs: 60_000,
    },
    most: 4,
    commandTimeoutMs: 30_000,
    failed: () => undefined,
  });
  const looked = assert.rejects(connections.look('acp'));
  await once(server, 'connection');
  // So long it may only be slow, and who comes waits with it.
  passes(4900);
  let isToldEarly = false;
  const early = assert.rejects(connections.acquire({ patient: false })).then(() => {
    isToldEarly = true;
  });
  // What it said meanwhile is read before anything is concluded.
  passes(100);
  await once(server, 'connection');
  passes(100);
  await assert.rejects(connections.acquire({ patient: false }), ({ cause }: Error) =>
    /did not answer/.test(String(cause)),
  );
  assert.equal(isToldEarly, false);
  for (const socket of sockets) socket.destroy();
  server.close();
  await Promise.all([looked, early, connections.close()]);
});

test('whether a server answers is looked at also while a write to it is waited for', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const condition = postgresCondition('postgres://127.0.0.1/acp', silentLogger);
  const unreachable = new NotConnectedError(new Error('timeout'));
  condition.failed(unreachable);
  const write = Promise.withResolvers<void>();
  let written = 0;
  let looked = 0;
  let isThere = true;
  const watch = watchPostgres(
    {
      probeWrite: () => {
        written += 1;
        return write.promise;
      },
    },
    condition,
    async () => {
      looked += 1;
      if (!isThere) throw unreachable;
    },
  );
  const second = async (): Promise<void> => {
    t.mock.timers.tick(1000);
    await turn();
  };
  await second();
  isThere = false;
  await second();
  await second();
  assert.deepEqual({ looked, written, trouble: condition.trouble }, { looked: 3, written: 1, trouble: 'unavailable' });
  isThere = true;
  await second();
  assert.equal(written, 1, 'one write at a time');
  write.resolve();
  await turn();
  assert.equal(condition.trouble, null);
  await watch.stop();
});
