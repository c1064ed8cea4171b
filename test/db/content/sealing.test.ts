import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import { createContentCipher, plainContent } from '../../../src/core/content-cipher.ts';
import { contentFiles } from '../../../src/db/content/files.ts';
import { sealedContent } from '../../../src/db/content/sealing.ts';
import { type ContentPlace, type ContentReading, contentPlace } from '../../../src/db/content/store.ts';

const key = (fill: number): string => Buffer.alloc(32, fill).toString('base64');
const keys = { a: key(1), b: key(2) };
const chunk = 65_536;

const open = (t: TestContext) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = contentFiles(folder);
  return { folder, files, store: sealedContent(files, createContentCipher('a', keys)) };
};

const placeOf = (content: Uint8Array, tenantId = 'acme'): ContentPlace =>
  contentPlace(tenantId, createHash('sha256').update(content).digest('hex'));

const keep = async (store: ContentReading, content: Uint8Array, piece = 10_000): Promise<ContentPlace> => {
  const draft = await store.draft();
  for (let at = 0; at < content.length; at += piece) await draft.write(content.subarray(at, at + piece));
  await draft.keep(placeOf(content));
  await draft.discard();
  return placeOf(content);
};

const streamed = async (store: ContentReading, place: ContentPlace): Promise<Buffer> => {
  const source = await store.open(place);
  assert.ok(source !== null);
  const parts: Uint8Array[] = [];
  for await (const part of source.bytes) parts.push(part);
  const all = Buffer.concat(parts);
  assert.equal(source.sizeBytes, all.length);
  return all;
};

const failed = (error: unknown): boolean => error instanceof AcpError && error.code === 'decryption-failed';
const refuses = async (store: ContentReading, place: ContentPlace): Promise<void> => {
  await assert.rejects(store.read(place), failed);
  await assert.rejects(streamed(store, place), failed);
};

test('SEC-50 files of every length come back as they were, and hold nothing of it', async (t) => {
  const { folder, store } = open(t);
  for (const length of [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk + 5]) {
    const content = Buffer.alloc(length, `length ${length}, `);
    const place = await keep(store, content);
    assert.ok((await streamed(store, place)).equals(content), String(length));
    assert.ok(content.equals((await store.read(place)) ?? Buffer.alloc(0)), String(length));
    assert.ok(!readFileSync(join(folder, place)).includes('length'), String(length));
  }
});

test('SEC-50 what is being received can be read at any place, before it has one', async (t) => {
  const { store } = open(t);
  const content = randomBytes(2 * chunk + 1000);
  const draft = await store.draft();
  for (let at = 0; at < content.length; at += 7000) await draft.write(content.subarray(at, at + 7000));
  for (const [offset, length] of [
    [0, 10],
    [chunk - 5, 10],
    [chunk, 2 * chunk],
    [2 * chunk + 990, 50],
    [9e6, 4],
  ] as const)
    assert.deepEqual(Buffer.from(await draft.read(offset, length)), content.subarray(offset, offset + length));
  await draft.discard();
});

test('SEC-53 a file that was moved, cut off, reordered or changed, or whose key is absent, is refused', async (t) => {
  const { folder, files, store } = open(t);
  const content = Buffer.alloc(3 * chunk, 'abc');
  const place = await keep(store, content);
  const path = join(folder, place);
  const whole = readFileSync(path);
  const size = chunk + 16;
  const chunkAt = (index: number) => whole.subarray(256 + index * size, 256 + (index + 1) * size);
  for (const bytes of [
    whole.subarray(0, 256 + 2 * size),
    whole.subarray(0, 256),
    whole.subarray(0, 100),
    whole.subarray(0, whole.length - 1),
    Buffer.concat([whole, Buffer.from('x')]),
    Buffer.concat([whole.subarray(0, 256), chunkAt(1), chunkAt(0), chunkAt(2)]),
    Buffer.concat([whole.subarray(0, 256), chunkAt(0), chunkAt(0), chunkAt(2)]),
    Buffer.concat([whole.subarray(0, whole.length - 40), Buffer.alloc(40)]),
  ]) {
    writeFileSync(path, bytes);
    await refuses(store, place);
  }
  writeFileSync(path, whole);
  assert.ok((await streamed(store, place)).equals(content));

  const other = contentPlace('other', place.slice(-64));
  mkdirSync(dirname(join(folder, other)), { recursive: true });
  copyFileSync(path, join(folder, other));
  await refuses(store, other);
  await refuses(sealedContent(files, createContentCipher('b', { b: keys.b })), place);
  await refuses(sealedContent(files, plainContent), place);
  assert.ok((await streamed(sealedContent(files, createContentCipher('b', keys)), place)).equals(content));
});

test('SEC-52 plain files of before are read, and equal bytes that come again are sealed', async (t) => {
  const { folder, files, store } = open(t);
  for (const text of ['', 'short', 'plain '.repeat(30_000)]) {
    const content = Buffer.from(text);
    const place = await keep(files, content);
    assert.equal((await streamed(store, place)).toString(), text);
    assert.equal(Buffer.from((await store.read(place)) ?? []).toString(), text);
    await keep(store, content);
    assert.notEqual(readFileSync(join(folder, place)).toString(), text);
    assert.equal((await streamed(store, place)).toString(), text);
    await keep(sealedContent(files, plainContent), content);
    assert.equal(readFileSync(join(folder, place)).toString(), text, 'switched off, they are plain again');
  }
});

test('SEC-52 plain content that begins like a sealed file is read as it is, in a store of any configuration', async (t) => {
  const { folder, files, store } = open(t);
  const plain = sealedContent(files, plainContent);
  const sealed = await keep(store, Buffer.alloc(2 * chunk, 'abc'));
  const stolen = readFileSync(join(folder, sealed));
  const magic = stolen.subarray(0, 16);
  const lost = Buffer.from(stolen.subarray(0, 256).toString('latin1').replace(':1:a:', ':1:z:'), 'latin1');
  for (const content of [magic, Buffer.concat([magic, Buffer.alloc(3 * chunk, 'x')]), stolen, lost]) {
    const place = await keep(plain, content);
    assert.ok(readFileSync(join(folder, place)).equals(content));
    for (const reader of [plain, store]) {
      assert.ok((await streamed(reader, place)).equals(content));
      assert.ok(content.equals((await reader.read(place)) ?? Buffer.alloc(0)));
    }
    await keep(store, content);
    assert.ok((await streamed(store, place)).equals(content));
    await refuses(plain, place);
  }
  assert.equal((await streamed(store, sealed)).toString(), 'abc'.repeat(chunk).slice(0, 2 * chunk));
});

test('SEC-53 a source that nobody reads, or only begins to read, is closed', async (t) => {
  const { folder, store } = open(t);
  const place = await keep(store, Buffer.alloc(3 * chunk));
  await (await store.open(place))?.dispose();
  for await (const part of (await store.open(place))?.bytes ?? []) {
    assert.ok(part.length > 0);
    break;
  }
  truncateSync(join(folder, place), 300);
  await assert.rejects(store.open(place), failed);
  await store.remove(place);
  assert.ok(!existsSync(join(folder, place)));
  assert.equal(await store.open(place), null);
});
