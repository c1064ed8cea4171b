import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { reservedActions } from '../../../src/features/audit/index.ts';
import { operations } from '../../../src/operations.ts';
import { forEachDurableService, type OpenApp, type TestApp } from '../../support/app.ts';
import { runJson } from '../runs/run-calls.ts';

/** A module whose tool writes what its arguments say, and answers with what came of it. */
const source = `
export default (host) => ({
  name: 'ledger',
  tools: [{
    name: 'note',
    description: 'Writes an entry.',
    inputSchema: { type: 'object' },
    async execute(entry, { tenantId }) {
      try {
        await host.audit.record({ tenantId, ...entry });
        return 'written';
      } catch (error) {
        return error.message;
      }
    },
  }],
});
`;

const entry = { action: 'order.cancel', entity: 'order:A-1' };

const openLedger = async (open: OpenApp): Promise<TestApp> => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-ledger-'));
  const file = join(folder, 'ledger.mjs');
  writeFileSync(file, source);
  try {
    return await open({
      host: { Modules: [file] },
      script: [
        { when: { tool: 'note' }, reply: { text: '{{last}}' } },
        { when: { message: '/^(?<args>.*)$/s' }, reply: { toolCalls: [{ name: 'note', arguments: '{{args}}' }] } },
      ],
      agents: [{ name: 'helper', toolNames: ['note'] }],
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
};

const noted = async (app: TestApp, given: unknown): Promise<string | null> =>
  (await runJson(app.client, 'helper', JSON.stringify(given))).output;

const trail = async (app: TestApp) =>
  (await app.client.audit.list({ query: {} })).body.filter(({ entity }) => entity.startsWith('order:'));

forEachDurableService('AUDIT-22 a module writes entries of its own into the chain of a tenant', async (open) => {
  const app = await openLedger(open);
  const after = { state: 'canceled', apiKey: 'sk-1' };
  assert.equal(await noted(app, { ...entry, after, hash: 'x', id: 'y', createdAt: 'z' }), 'written');
  assert.equal(await noted(app, { ...entry, action: 'x', actor: 'ann', before: {} }), 'written');
  assert.equal(await noted(app, { ...entry, action: `a${'.'.repeat(63)}`, actor: null }), 'written');
  const entries = await trail(app);
  assert.deepEqual(entries.map(({ action, actor, before, after: kept }) => [action, actor, before, kept]).reverse(), [
    ['order.cancel', 'module:ledger', null, '{"state":"canceled","apiKey":"***"}'],
    ['x', 'ann', '{}', null],
    [`a${'.'.repeat(63)}`, null, null, null],
  ]);
  for (const { id, hash, createdAt } of entries) {
    assert.match(hash, /^[0-9a-f]{64}$/, 'AUDIT-23 a hash of the module is ignored');
    assert.ok(id !== 'y' && createdAt !== 'z');
  }
  const { body } = await app.client.audit.verify({ query: {} });
  assert.equal(body.status, 'Valid');
});

forEachDurableService(
  'AUDIT-22 names of the service and what is not in order are refused, and nothing is written',
  async (open) => {
    const app = await openLedger(open);
    const wrong: readonly [object, RegExp][] = [
      ...['agent.update', 'webhook.disable', 'emergency.stop'].map(
        (action) => [{ ...entry, action }, /must not be .* the service's own/] as [object, RegExp],
      ),
      ...['', 'Order', '1order', '.order', 'order cancel', `a${'b'.repeat(64)}`, 7].map(
        (action) => [{ ...entry, action }, /action must be 1 to 64/] as [object, RegExp],
      ),
      [{ ...entry, entity: 'order' }, /entity must be <type>:<id>/],
      [{ ...entry, entity: `o:${'x'.repeat(255)}` }, /entity must be/],
      [{ ...entry, tenantId: 'a b' }, /tenantId must be/],
      [{ ...entry, actor: '' }, /actor must be/],
      [{ ...entry, after: 'text' }, /after must be an object/],
      [{ ...entry, after: { text: 'x'.repeat(70_000) } }, /after must have at most 65536/],
    ];
    for (const [given, message] of wrong) assert.match((await noted(app, given)) ?? '', message);
    assert.deepEqual(await trail(app), []);
  },
);

test('AUDIT-22 every action that an operation declares is reserved', () => {
  const declared = Object.values(operations).flatMap((table) =>
    Object.values(table).flatMap((operation) => ('audit' in operation ? [operation.audit.action] : [])),
  );
  assert.ok(declared.length > 20);
  assert.deepEqual(
    declared.filter((action) => !reservedActions.has(action)),
    [],
  );
});
