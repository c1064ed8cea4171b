import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { moveStore, releaseStore } from '../../src/db/move/move-store.ts';
import { type OpenOptions, openStorage } from '../../src/db/open-storage.ts';
import { signingKeyMove, verifyTrails } from '../../src/features/audit/index.ts';
import { moveUntilKilled } from '../db/move/killed-move.ts';
import { call } from '../e2e/wire.ts';
import { type Fleet, openFleet } from '../support/fleet.ts';
import { storeOptions } from '../support/opened-store.ts';
import { skip } from './members.ts';

const openHeld = async (t: TestContext, processes: number) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-hold-'));
  const fleet = await openFleet({
    processes,
    service: { Drain: { Timeout: '5s' } },
    host: { EnableDiagnosticsEndpoint: true },
  });
  t.after(async () => {
    await fleet.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const from: OpenOptions = storeOptions('', {
    provider: 'Postgres',
    postgres: { connectionString: fleet.database, directConnectionString: null, schema: 'service', maxConnections: 4 },
  });
  const to = (name: string): OpenOptions => storeOptions(join(folder, name));
  const move = (name: string, options: object = {}) =>
    moveStore({ from, to: to(name), hold: true, verifyTrails, signingKey: signingKeyMove, ...options });
  return { fleet, from, to, move };
};

const agentsAt = async (url: string): Promise<number> => {
  const answer = await call(`${url}/api/agents`);
  assert.equal(answer.status, 200);
  return answer.json<readonly unknown[]>().length;
};

const saveAgent = (url: string, name: string) =>
  call(`${url}/api/agents`, { method: 'POST', body: { name, model: { provider: 'demo', model: 'm' } } });

/** Reads are answered, writes are refused with the reason, and whoever asks for readiness is sent elsewhere. */
const assertHeld = async (fleet: Fleet, agents: number): Promise<void> => {
  for (const { url } of fleet.members) {
    assert.equal(await agentsAt(url), agents);
    const refused = await saveAgent(url, 'late');
    assert.equal(refused.status, 503, refused.text);
    assert.match(refused.text, /The store is being moved: this process answers reads only/);
    assert.equal((await call(`${url}/health/ready`)).status, 503);
    const { storeSharing } = (await call(`${url}/api/diagnostics`)).json<{ storeSharing: { heldFor: string } }>();
    assert.match(storeSharing.heldFor, /^The store is held for a move to .* \(by process \d+ on .*, since \d{4}-/);
  }
};

test('a store that several processes serve is moved while they answer reads, and nobody writes to it after', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const { fleet, from, to, move } = await openHeld(t, 2);
  const [first] = fleet.members;
  assert.ok(first !== undefined);
  assert.equal((await saveAgent(first.url, 'early')).status, 201);
  await assert.rejects(move('refused.db', { hold: false }), /is served by other processes.*--hold/);
  assert.equal((await saveAgent(first.url, 'second')).status, 201, 'a move that was refused holds nobody');
  let isSeen = false;
  const report = await move('moved.db', {
    async verifyTrails(storage: Parameters<typeof verifyTrails>[0]) {
      await assertHeld(fleet, 2);
      await assert.rejects(move('third.db'), /is being moved by another process/);
      isSeen = true;
      return verifyTrails(storage);
    },
  });
  assert.deepEqual([isSeen, report.findings], [true, []]);
  await assertHeld(fleet, 2);
  await assert.rejects(openStorage(from), /was moved to .*moved\.db .* missing there.*--release/);
  assert.equal(report.tables.find(({ table }) => table === 'agents')?.rows, 2, 'early and second');
  await (await openStorage(to('moved.db'))).close();
  assert.match((await releaseStore(from)).released ?? '', /was moved to/);
  assert.equal((await releaseStore(from)).released, null);
  await fleet.end(first, 'stop');
  const again = await fleet.join();
  assert.equal((await saveAgent(again.url, 'after')).status, 201);
});

test('a move that fails or is stopped releases its store, and one that is killed leaves word of itself', {
  skip,
  timeout: 180_000,
}, async (t) => {
  const { fleet, from, to, move } = await openHeld(t, 1);
  const [member] = fleet.members;
  assert.ok(member !== undefined);
  assert.equal((await saveAgent(member.url, 'early')).status, 201);
  const stop = new AbortController();
  await assert.rejects(move('stopped.db', { signal: stop.signal, tell: () => stop.abort() }), { name: 'AbortError' });
  await assertHeld(fleet, 1);
  // Whoever starts now finds nothing that keeps it from writing.
  await fleet.end(member, 'stop');
  const next = await fleet.join();
  assert.equal((await saveAgent(next.url, 'second')).status, 201);

  assert.equal(await moveUntilKilled(from, to('killed.db'), 3, null, true), null, 'killed');
  await assertHeld(fleet, 2);
  await assert.rejects(openStorage(from), /is held for a move to .*killed\.db .*--hold.*--release/);
  const report = await move('killed.db');
  assert.deepEqual([report.resumed, report.tables.find(({ table }) => table === 'agents')?.rows], [true, 2]);

  assert.equal(await moveUntilKilled(from, to('given-up.db'), 3, null, true), null, 'killed');
  assert.match((await releaseStore(from)).released ?? '', /held for a move to .*given-up\.db/);
  await (await openStorage(from)).close();
});
