import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import type { AttachmentReference } from '../../../src/engine/context/run-attachments.ts';
import { attachmentStore } from '../../../src/features/attachments/attachments.store.ts';
import { createMemoryGate } from '../../../src/features/attachments/memory-gate.ts';
import { createRunAttachments } from '../../../src/features/attachments/run-attachments.ts';
import { openTestStore } from '../../support/opened-store.ts';

const never = new AbortController().signal;

/** The names of those that are in, in the order in which they came in. */
const openGate = (limit: number) => {
  const gate = createMemoryGate(limit);
  const inside: string[] = [];
  return {
    inside,
    enter: (name: string, bytes: number, signal = never) =>
      gate.take(bytes, signal).then((giveBack) => {
        inside.push(name);
        return giveBack;
      }),
  };
};

test('the gate lets in what fits, and the rest in its order', async () => {
  const { inside, enter } = openGate(100);
  const a = await enter('a', 60);
  const b = await enter('b', 40);
  const waiting = [enter('c', 50), enter('d', 10)];
  await turn();
  assert.deepEqual(inside, ['a', 'b']);
  b();
  await turn();
  assert.deepEqual(inside, ['a', 'b'], 'd would fit, and does not overtake c');
  a();
  a();
  const [c, d] = await Promise.all(waiting);
  assert.deepEqual(inside, ['a', 'b', 'c', 'd']);
  const e = enter('e', 50);
  await turn();
  assert.equal(inside.length, 4, 'what is given back twice counts once');
  c?.();
  d?.();
  (await e)();
});

test('more than the limit gets in alone', async () => {
  const { inside, enter } = openGate(100);
  const small = await enter('small', 1);
  const large = enter('large', 1000);
  const after = enter('after', 1);
  await turn();
  assert.deepEqual(inside, ['small']);
  small();
  const giveBack = await large;
  await turn();
  assert.deepEqual(inside, ['small', 'large']);
  giveBack();
  (await after)();
});

test('whoever stops waiting leaves the line, and those behind go on', async () => {
  const { inside, enter } = openGate(100);
  const a = await enter('a', 50);
  const stop = new AbortController();
  const large = enter('large', 100, stop.signal);
  const b = enter('b', 50);
  const refused = assert.rejects(large, /enough/);
  await turn();
  assert.deepEqual(inside, ['a']);
  stop.abort(new Error('enough'));
  await refused;
  (await b)();
  await assert.rejects(enter('late', 1, stop.signal), /enough/);
  a();
});

const mebibyte = 1024 * 1024;
const sizeBytes = 20 * mebibyte;
const limitBytes = 64 * mebibyte;

/** Attachments of 20 MiB each, whose bytes are made when they are read. */
const openAttachments = async (t: TestContext, hashes: readonly string[]) => {
  const { storage } = await openTestStore(t);
  const store = storage.stores(attachmentStore);
  const references: AttachmentReference[] = [];
  for (const [index, digit] of hashes.entries()) {
    const id = `0190b6a2-0000-7000-8000-00000000000${index}`;
    const reference = { attachmentId: id, mediaType: 'image/png', fileName: 'a.png' };
    references.push(reference);
    await store.insert({
      id,
      tenant_id: 'default',
      session_id: null,
      run_id: null,
      file_name: reference.fileName,
      media_type: reference.mediaType,
      byte_size: sizeBytes,
      sha256: digit.repeat(64),
      created_by: null,
      user_id: null,
      owner_id: null,
      created_at: 1,
    });
  }
  const held = { now: 0, most: 0, reads: 0 };
  const read = async (): Promise<Uint8Array> => {
    held.reads += 1;
    held.now += sizeBytes;
    held.most = Math.max(held.most, held.now);
    return Buffer.alloc(sizeBytes);
  };
  const access = { mayUpload: async () => undefined, mayList: async () => null, may: async () => true };
  const port = createRunAttachments({ store, content: { read }, access });
  const load = (index: number, signal: AbortSignal = never) => {
    const named = [references[index] ?? assert.fail()];
    return port.load({ tenantId: 'default', sessionId: null, named, earlier: [], signal });
  };
  return { held, load };
};

test('ATT-10 the contents that parallel runs hold are bounded, and all of them get their turn', async (t) => {
  const { held, load } = await openAttachments(t, [...'01234567']);
  const answers = await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const loaded = await load(index);
      // Long enough that the others come in, if anything lets them.
      for (let turns = 0; turns < 20; turns += 1) await turn();
      const content = loaded.get(`0190b6a2-0000-7000-8000-00000000000${index}`);
      held.now -= sizeBytes;
      loaded.release();
      return content?.kind;
    }),
  );
  assert.deepEqual(answers, Array(8).fill('binary'));
  assert.equal(held.reads, 8);
  assert.ok(held.most <= limitBytes, `${held.most} bytes were held`);
  assert.ok(held.most > sizeBytes, 'runs go side by side');
});

test('ATT-10 runs with the same bytes read them once, and a run that fails gives back what it took', async (t) => {
  const { held, load } = await openAttachments(t, ['0', '0', '0']);
  const loaded = await Promise.all([load(0), load(1), load(2)]);
  assert.equal(held.reads, 1);
  const stop = new AbortController();
  const waiting = load(0, stop.signal);
  const refused = assert.rejects(waiting, /cancelled/);
  stop.abort(new Error('cancelled'));
  await refused;
  for (const entry of loaded) entry.release();
  const again = await Promise.all([load(0), load(1), load(2)]);
  assert.equal(held.reads, 2, 'nothing was kept for nobody');
  for (const entry of again) entry.release();
});
