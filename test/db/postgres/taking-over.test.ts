import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../../../src/core/logger.ts';
import type { PostgresConnection } from '../../../src/db/postgres/connection.ts';
import type { Connections } from '../../../src/db/postgres/connections.ts';
import { createPostgresDialect } from '../../../src/db/postgres/dialect.ts';
import { createOutage, type Outage } from '../../../src/db/postgres/outage.ts';
import { createSureSending } from '../../../src/db/postgres/sure-sending.ts';

const readonly = Object.assign(new Error('cannot execute INSERT in a read-only transaction'), { code: '25006' });

/** Sends to a server that takes writes from its third message on; how often it was sent, and what it came to. */
const sentTo = async (prepare: (outage: Outage) => void) => {
  const outage = createOutage();
  outage.answered();
  prepare(outage);
  let sent = 0;
  const transaction = createSureSending(
    (work) => work({ lost: false, failedAt: 0 } as PostgresConnection),
    outage,
    async () => {
      sent += 1;
      if (sent < 3) throw readonly;
    },
    async () => null,
  );
  const failure = await transaction([], [], 100);
  return { sent, error: failure?.error ?? null };
};

test('a standby that answers in place of a server that has just gone is waited for, until it takes writes', async () => {
  assert.deepEqual(await sentTo((outage) => outage.lost()), { sent: 3, error: null });
  // It has been asked something since, which it could answer.
  const asked = (outage: Outage): void => {
    outage.began();
    outage.answered();
  };
  assert.deepEqual(await sentTo(asked), { sent: 3, error: null });
});

test('a server that was made read-only refuses what is written at once', async () => {
  assert.deepEqual(await sentTo(() => undefined), { sent: 1, error: readonly });
});

test('nor is one waited for whose predecessor went half a minute ago', async (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const lost = (outage: Outage): void => {
    outage.lost();
    now = 30_000;
  };
  assert.deepEqual(await sentTo(lost), { sent: 1, error: readonly });
});

test('a server counts as away once it has been for 5 s, and a standby for half a minute after its predecessor went; never one that was made read-only', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  let isReadonly = false;
  const outage = createOutage();
  const { isAway } = createPostgresDialect({
    connections: { outage } as Connections,
    schema: 'service',
    refusesWrites: () => isReadonly,
    log: silentLogger,
    exclusive: (work) => work(),
  });
  const looks = (at: number): boolean | undefined => {
    now = at;
    return isAway?.();
  };
  outage.answered();
  isReadonly = true;
  assert.equal(looks(1000), false, 'nothing was lost: it takes no writes, and nobody knows how long');
  isReadonly = false;
  outage.lost();
  outage.began();
  assert.deepEqual([looks(5999), looks(6000)], [false, true]);
  outage.answered();
  assert.equal(looks(6000), false);
  isReadonly = true;
  assert.deepEqual([looks(30_999), looks(31_000)], [true, false]);
});
