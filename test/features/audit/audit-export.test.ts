import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { signEnd } from '../../../src/features/audit/export-format.ts';
import {
  type ExpectedExport,
  type ExportVerification,
  verifyExport,
} from '../../../src/features/audit/export-reader.ts';
import { forEachDurableService, type TestApp } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';
import { idsOf, tampering } from './tampering.ts';

const model = { provider: 'demo', model: 'demo-1' };

const exported = async ({ client }: TestApp, query = {}): Promise<string> => {
  const { bytes } = await client.audit.export({ query });
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes ?? []) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
};

const verified = (text: string, expected: Partial<ExpectedExport> = {}): Promise<ExportVerification> =>
  verifyExport(
    (async function* () {
      // In pieces, as a file is read: lines end anywhere in them.
      for (let at = 0; at < text.length; at += 97) yield Buffer.from(text.slice(at, at + 97));
    })(),
    { publicKey: null, continues: null, ...expected },
  );

const change = async (app: TestApp, ...names: string[]): Promise<void> => {
  for (const name of names) await app.client.agents.create({ body: { name, model } });
};

forEachDurableService('an export is checked without the service, and every change of it shows', async (open) => {
  const app = await open({});
  await change(app, 'one', 'two', 'three');
  const text = await exported(app);
  const valid = await verified(text);
  assert.equal(valid.status, 'Valid', valid.message);
  assert.deepEqual([valid.entriesChecked, valid.tenantId, valid.pinned], [3, 'default', false]);
  // Elsewhere it is a row of the store.
  if (existsSync(join(app.folder, 'data/acp.db')))
    assert.equal(statSync(join(app.folder, 'data/acp.db.audit-key.pem')).mode & 0o777, 0o600);

  const lines = text.trimEnd().split('\n');
  const joined = (parts: readonly string[]) => `${parts.join('\n')}\n`;
  const faults: readonly (readonly [string, string])[] = [
    ['Altered', text.replace('agent:two', 'agent:2wo')],
    ['Altered', text.replace('"tenantId":"default","createdAt"', '"tenantId":"default" ,"createdAt"')],
    ['Altered', joined([...lines.slice(0, 2), ...lines.slice(3)])],
    ['Altered', joined([...lines, lines[1] ?? ''])],
    ['Altered', text.replace('"entries":3', '"entries":2')],
    ['Truncated', joined(lines.slice(0, -1))],
    ['Truncated', text.slice(0, -20)],
    ['Malformed', text.replace('{"id"', '"id"')],
    ['Malformed', 'hello\n'],
    ['Malformed', '{}\n'],
    ['Malformed', ''],
    ['UnknownVersion', text.replace('"version":1', '"version":2')],
  ];
  for (const [status, changed] of faults) {
    const found = await verified(changed);
    assert.equal(found.status, status, found.message);
  }

  const ids = lines.slice(1, -1).map((line) => JSON.parse(line).id as string);
  const told = async (changed: string): Promise<readonly unknown[]> => {
    const { entriesChecked, firstFailingEntryId, message } = await verified(changed);
    return [entriesChecked, firstFailingEntryId, message];
  };
  const altered = 'The file was changed after it was signed.';
  assert.deepEqual(await told(text.replace('agent:two', 'agent:2wo')), [
    3,
    ids[1],
    `${altered} 3 entries were read: entry ${ids[1]} does not have the hash of its content.`,
  ]);
  assert.deepEqual(await told(text.replace('"entries":3', '"entries":2')), [
    3,
    null,
    `${altered} 3 entries were read, whole and in order up to ${ids[2]}.`,
  ]);
  assert.deepEqual(await told(joined(lines.slice(0, 2))), [
    1,
    null,
    `The file has no end: it was cut off, or did not arrive whole. 1 entry was read, whole and in order up to ${ids[0]}.`,
  ]);

  const own = valid.fingerprint ?? '';
  assert.equal((await verified(text, { publicKey: own })).status, 'Valid');
  assert.equal((await verified(text, { publicKey: JSON.parse(lines[0] ?? '').publicKey })).status, 'Valid');
  assert.equal((await verified(text, { publicKey: `SHA256:${'A'.repeat(43)}` })).status, 'OtherKey');
  // Signed anew by somebody else, with another key in the first line: only who knows the key can tell.
  const { privateKey } = generateKeyPairSync('ed25519');
  const { end } = JSON.parse(lines.at(-1) ?? '');
  const forged = joined([...lines.slice(0, -1), JSON.stringify({ end, signature: signEnd(end, privateKey) })]);
  assert.equal((await verified(forged)).status, 'Altered');
});

forEachDurableService(
  'an export of a trail that was tampered with is genuine, and says what is wrong',
  async (open) => {
    const app = await open({});
    await change(app, 'one', 'two');
    const earlier = await verified(await exported(app));
    await change(app, 'three');
    const later = await exported(app);
    assert.equal((await verified(later, { continues: earlier.last })).status, 'Valid');
    const other = { id: earlier.last?.id ?? '', hash: '0'.repeat(64) };
    assert.equal((await verified(later, { continues: other })).status, 'Rewritten');
    const [first = '', second = '', third] = await idsOf(app);
    const hand = tampering(app);
    await hand.remove(second);
    const gap = await verified(await exported(app));
    assert.deepEqual([gap.status, gap.firstFailingEntryId], ['Gap', third]);
    await hand.change(first, { actor: 'x' });
    assert.equal((await verified(await exported(app))).status, 'Broken');
    await hand.removeAll();
    assert.equal((await verified(await exported(app))).status, 'Gap');
  },
);

forEachDurableService('a part of the trail is exported with its bounds', async (open) => {
  const app = await open({});
  await change(app, 'one', 'two');
  const [last] = (await app.client.audit.list({ query: { limit: 1 } })).body;
  const part = await verified(await exported(app, { after: last?.createdAt }));
  assert.equal(part.status, 'Valid', part.message);
  assert.equal(part.after, last?.createdAt);
  const none = await verified(await exported(app, { before: '2020-01-01T00:00:00Z' }));
  assert.deepEqual([none.status, none.entriesChecked], ['Valid', 0]);
});

forEachDurableService('a store in memory has no key to sign with', async (open) => {
  const app = await open({ service: { Persistence: { Provider: 'Memory' } } });
  assert.equal((await refusal(app.client.audit.export({ query: {} }))).code, 'persistent-store-required');
});
