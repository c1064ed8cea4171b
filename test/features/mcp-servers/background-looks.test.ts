import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backgroundDiscovery } from '../../../src/features/mcp-servers/background-discovery.ts';
import { testClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

test('MCP-12 MCP-13 a round asks whoever is not known to list the same still, and nobody else', async (t) => {
  const clock = testClock({ stands: true });
  const later = clock.now() + 3_600_000;
  const rows = Object.entries({
    plain: { state: 'Connected', fresh_until: null },
    fresh: { state: 'Connected', fresh_until: later },
    lapsed: { state: 'Connected', fresh_until: clock.now() },
    // It was reached once, and its list would hold; what it said then is of no use now.
    unreachable: { state: 'Unreachable', fresh_until: later },
    unauthorized: { state: 'Connected', fresh_until: later },
    off: { state: 'Unknown', fresh_until: null, enabled: 0 },
  }).map(([name, more]) => [name, { enabled: 1, ...more, name }] as const);
  const asked: string[] = [];
  const looks = backgroundDiscovery({
    prepare: async () => undefined,
    table: { rows: new Map(rows) as never },
    discovery: { look: async ({ name }: { readonly name: string }) => void asked.push(name) } as never,
    lacks: ({ name }) => name === 'unauthorized',
    ...{ clock, intervalMs: 300_000, timeoutMs: 1000, now: clock.now },
    log: { error: ({ error }) => assert.fail(String(error)) },
  });
  t.after(() => looks.stop());
  const due = ['lapsed', 'plain', 'unauthorized', 'unreachable'];
  looks.start(
    () => true,
    () => null,
  );
  await eventually('a round', () => asked.length >= due.length || null);
  assert.deepEqual(asked.splice(0).toSorted(), due);
  await clock.advance(3_600_000);
  assert.equal(asked.filter((name) => name === 'plain').length, 12);
  assert.equal(asked.filter((name) => name === 'fresh').length, 1, 'once it has lapsed');
  assert.ok(!asked.includes('off'));
});

test('MCP-13 a look that breaks down keeps no other server from being asked', async (t) => {
  const clock = testClock({ stands: true });
  const names = Array.from({ length: 12 }, (_, index) => `s${index}`);
  const row = (name: string) => ({ name, tenant_id: 'default', enabled: 1, state: 'Unknown', fresh_until: null });
  const asked: string[] = [];
  const failed: unknown[] = [];
  const looks = backgroundDiscovery({
    prepare: async () => undefined,
    table: { rows: new Map(names.map((name) => [name, row(name)])) as never },
    discovery: {
      async look({ name }: { readonly name: string }) {
        asked.push(name);
        if (Number(name.slice(1)) < 4) throw new Error('The store is away.');
      },
    } as never,
    lacks: () => false,
    ...{ clock, intervalMs: 300_000, timeoutMs: 1000, now: clock.now },
    log: { error: ({ server }: { readonly server?: unknown }) => void failed.push(server) },
  });
  t.after(() => looks.stop());
  looks.start(
    () => true,
    () => null,
  );
  await eventually('all are asked', () => asked.length === names.length || null);
  assert.deepEqual([asked.toSorted(), failed.toSorted()], [names.toSorted(), names.slice(0, 4)]);
});

test('MCP-12 refreshes back off from a server with unreadable answers, until it answers well or is saved', async (t) => {
  const clock = testClock({ stands: true });
  const row = (id: string) => ({ id, tenant_id: 'default', enabled: 1, state: 'Unreachable', updated_at: 1 });
  const rows = new Map(['hostile', 'silent'].map((id) => [id, row(id)]));
  const asked: string[] = [];
  let isReadable = false;
  const looks = backgroundDiscovery({
    prepare: async () => undefined,
    table: { rows: rows as never },
    discovery: {
      async look({ id }: { readonly id: string }) {
        asked.push(id);
        return id === 'hostile' && !isReadable;
      },
    } as never,
    lacks: () => false,
    ...{ clock, intervalMs: 300_000, timeoutMs: 1000, now: clock.now },
    log: { error: ({ error }) => assert.fail(String(error)) },
  });
  t.after(() => looks.stop());
  looks.start(
    () => true,
    () => null,
  );
  await eventually('a round', () => asked.length >= 2 || null);
  /** In which of the next rounds the hostile one is asked. */
  const roundsOf = async (count: number): Promise<readonly number[]> => {
    const rounds: number[] = [];
    for (let round = 1; round <= count; round += 1) {
      asked.length = 0;
      await clock.advance(300_000);
      assert.ok(asked.includes('silent'), 'one that does not answer costs nothing');
      if (asked.includes('hostile')) rounds.push(round);
    }
    return rounds;
  };
  assert.deepEqual(await roundsOf(60), [2, 5, 10, 19, 32, 45, 58]);
  rows.set('hostile', { ...row('hostile'), updated_at: 2 });
  assert.deepEqual(await roundsOf(5), [1, 3], 'saved again it is a new one');
  isReadable = true;
  assert.deepEqual(await roundsOf(6), [1, 2, 3, 4, 5, 6]);
  isReadable = false;
  assert.deepEqual(await roundsOf(5), [1, 3], 'what was before is forgotten');
});
