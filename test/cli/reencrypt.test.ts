import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type ContentCipher,
  createContentCipher,
  isDecryptionFailure,
  plainContent,
} from '../../src/core/content-cipher.ts';
import { openForReading } from '../../src/db/open-for-reading.ts';
import { openStorage } from '../../src/db/open-storage.ts';
import type { ReencryptReport } from '../../src/db/protection/reencrypt.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import { sessionStore } from '../../src/features/sessions/index.ts';
import { sessionRow } from '../features/sessions/session-calls.ts';
import { eventually } from '../support/eventually.ts';
import { storeOptions } from '../support/opened-store.ts';
import { storedRows } from '../support/store.ts';
import { createFolder } from './support.ts';

const key = Buffer.alloc(32, 7).toString('base64');
const settings = ['--set', 'Service:AtRest:ActiveKeyId=k', '--set', `Service:AtRest:Keys:k=${key}`];
const command = ['db', 'reencrypt', ...settings];

const messages = 40_000;
const textOf = (sequence: number): string => `message ${sequence} ${'.'.repeat(200)}`;

const conversation = { ...sessionRow('s', 1, 0), conversation_id: 'c', active_run_id: 'r' };

/** Messages in plain, as a service without a key left them. */
const fillStore = async (file: string): Promise<void> => {
  const { storage, close } = await openStorage(storeOptions(file));
  const sessions = storage.stores(sessionStore);
  const turn = Array.from({ length: messages }, (_, sequence) => ({
    ...{ messageId: `m${sequence}`, runId: null, createdAt: '', interrupted: false, role: 'User' as const },
    contents: [{ type: 'Text' as const, text: textOf(sequence) }],
  }));
  await storage.write([sessions.open(conversation), ...sessions.saveTurn(conversation, 'r', turn, null, 1)]);
  await close();
};

const withStore = async <T>(file: string, cipher: ContentCipher, read: (storage: RootStorage) => Promise<T>) => {
  const { storage } = await openForReading(storeOptions(file, { cipher }));
  try {
    return await read(storage);
  } finally {
    await storage.close();
  }
};

const textsOf = async (file: string, cipher: ContentCipher, count: number): Promise<string[]> => {
  const read = await withStore(file, cipher, (storage) =>
    storage.stores(sessionStore).messages({ ...conversation, message_count: count }),
  );
  return read.map(({ contents: [part] }) => (part?.type === 'Text' ? part.text : ''));
};

/** The first message cannot be read without a key any more. */
const isBegun = (file: string): Promise<boolean> =>
  textsOf(file, plainContent, 1).then(
    () => false,
    (error: unknown) => isDecryptionFailure(error),
  );

/** How many messages are encrypted. */
const sealedIn = async (file: string): Promise<number> => {
  const rows = await withStore(file, plainContent, (storage) => storedRows(storage, 'session messages'));
  return rows.filter(({ message }) => String(message).startsWith('acp:sealed:1:k:')).length;
};

const everyMessage = (file: string): Promise<string[]> => textsOf(file, createContentCipher('k', { k: key }), messages);

test('SEC-52 encrypting a store anew that is killed midway leaves it readable, and goes on when called again', async (t) => {
  const folder = createFolder(t);
  const file = join(folder.path, 'data', 'acp.db');
  await folder.acp(['db', 'migrate']);
  await fillStore(file);
  const expected = Array.from({ length: messages }, (_, sequence) => textOf(sequence));

  const { child } = folder.start(command);
  const ended = once(child, 'exit');
  await eventually('the first message is encrypted', () => {
    assert.equal(child.exitCode, null, 'it began before it ended');
    return isBegun(file);
  });
  child.kill('SIGKILL');
  await ended;
  const done = await sealedIn(file);
  assert.ok(done > 0 && done < messages, `it was killed midway, at ${done}`);
  assert.deepEqual(await everyMessage(file), expected);

  const counted = await folder.acp([...command, '--dry-run', '--json']);
  assert.equal(counted.code, 1);
  assert.equal((JSON.parse(counted.stdout) as ReencryptReport).left, messages - done);
  const rest = await folder.acp([...command, '--json']);
  const report = JSON.parse(rest.stdout) as ReencryptReport;
  assert.deepEqual([rest.code, report.left], [0, 0]);
  const table = report.tables.find((found) => found.table === 'session_messages');
  assert.deepEqual([table?.rows, table?.rewritten], [messages, messages - done], 'what was done is not done again');
  assert.equal(await sealedIn(file), messages);
  assert.deepEqual(await everyMessage(file), expected);
  assert.match((await folder.acp(['db', 'check', ...settings])).stdout, /is sound/);
});

test('SEC-52 a store is encrypted anew while nobody serves it; what is under which key is counted at any time', async (t) => {
  const folder = createFolder(t);
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  assert.equal((await folder.acp(['run', 'hello', 'What time is it?'])).code, 0);
  const { running } = await folder.serve();
  const refused = await folder.acp(command);
  assert.equal(refused.code, 8);
  assert.match(refused.stderr, /is owned by process \d+/);
  const counted = await folder.acp([...command, '--dry-run']);
  assert.equal(counted.code, 1);
  assert.match(counted.stdout, /^run_inputs +1 +1 +0 +0 +0 +0$/m);
  assert.match(counted.stdout, /^\d+ rows are not under the active key\.$/m);
  assert.equal((await folder.acp([...command, '--dry-run', '--compact'])).code, 2);
  assert.equal((await folder.acp(['db', 'reencrypt', '--dry-run'])).code, 0, 'without a key nothing is under one');
  running.child.kill('SIGTERM');
  await running.done;

  const done = await folder.acp(command);
  assert.equal(done.code, 0, done.stderr);
  assert.match(done.stdout, /^run_inputs +1 +1 +0 +1 +0 +0$/m);
  assert.match(done.stdout, /^Everything is under the active key\.$/m);
  assert.match(done.stderr, /free parts of the file: `acp db reencrypt --compact`/);
  const compacted = await folder.acp([...command, '--compact']);
  assert.deepEqual([compacted.code, compacted.stderr], [0, '']);
  const other = ['--set', 'Service:AtRest:ActiveKeyId=l', '--set', `Service:AtRest:Keys:l=${key.replace('B', 'C')}`];
  const lost = await folder.acp(['db', 'reencrypt', ...other]);
  assert.equal(lost.code, 1);
  assert.match(lost.stdout, /^Under key "k", which Service:AtRest:Keys does not have: \d+ rows\.$/m);
  const both = await folder.acp(['db', 'reencrypt', ...settings, ...other]);
  assert.equal(both.code, 0);
  assert.match(
    both.stdout,
    /^Nothing is under key "k" any more\. Only older backups need it in Service:AtRest:Keys\.$/m,
  );

  // Turned off: the keys are for reading only, and nothing needs them in the end.
  const keys = ['--set', `Service:AtRest:Keys:k=${key}`, '--set', `Service:AtRest:Keys:l=${key.replace('B', 'C')}`];
  const refusedPlain = await folder.acp(['db', 'reencrypt', ...settings, ...other, '--decrypt']);
  assert.match(refusedPlain.stderr, /ActiveKeyId is set/);
  assert.match((await folder.acp(['db', 'reencrypt', ...keys])).stderr, /--decrypt writes everything in plain/);
  const plain = await folder.acp(['db', 'reencrypt', ...keys, '--decrypt', '--compact']);
  assert.deepEqual([plain.code, plain.stderr], [0, '']);
  assert.match(plain.stdout, /^Nothing is encrypted\.$/m);
  const [run] = JSON.parse((await folder.acp(['runs', 'list', '--json'])).stdout) as { id: string }[];
  const input = await folder.acp(['runs', 'input', run?.id ?? '']);
  assert.equal(input.code, 0, input.stderr);
  assert.match(input.stdout, /What time is it\?/);
});
