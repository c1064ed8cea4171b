import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { png } from '../features/attachments/files.ts';
import { createFolder, type Folder } from './support.ts';

interface Descriptor {
  readonly id: string;
  readonly fileName: string;
  readonly mediaType: string;
  readonly byteSize: number;
  readonly sessionId: string | null;
}

/** The same commands without a server and with one; the second opens the store through it. */
const inBothWays = (name: string, body: (folder: Folder, t: TestContext) => Promise<void>): void => {
  for (const served of [false, true])
    test(`${name} [${served ? 'http' : 'in process'}]`, async (t) => {
      const folder = createFolder(t);
      writeFileSync(join(folder.path, 'dot.png'), png);
      folder.write('note.txt', 'Grüße aus Wien\n');
      if (served) await folder.serve();
      await body(folder, t);
    });
};

const json = async <T>(folder: Folder, args: readonly string[]): Promise<T> => {
  const { code, stdout, stderr } = await folder.acp([...args, '--json']);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout) as T;
};

inBothWays('a file that is refused hides none of those that were uploaded before it', async (folder) => {
  folder.write('empty.txt', '');
  const args = ['attachments', 'upload', 'dot.png', 'empty.txt', 'note.txt'];
  const shown = await folder.acp(args);
  assert.equal(shown.code, 2);
  assert.match(shown.stderr, /^error: The file is empty\./);
  assert.match(shown.stdout, /dot\.png +image\/png/);
  const { stdout } = await folder.acp([...args, '--json']);
  const told = JSON.parse(stdout) as Descriptor[];
  const { id } = told[0] ?? {};
  assert.equal((await json<Descriptor[]>(folder, ['attachments', 'list']))[0]?.id, id);
  assert.equal(told.length, 1);
});

inBothWays('files are uploaded, listed, downloaded and deleted', async (folder) => {
  const shown = await folder.acp(['attachments', 'upload', 'dot.png', 'note.txt', '--session', 'trip']);
  assert.equal(shown.code, 0, shown.stderr);
  assert.match(shown.stdout, /^ID +FILE NAME +MEDIA TYPE +BYTE SIZE +SESSION ID +CREATED AT\n/);
  assert.match(shown.stdout, /dot\.png +image\/png +\d+ +trip /);
  assert.match(shown.stdout, /note\.txt +text\/plain +17 +trip /);
  const alone = await json<Descriptor>(folder, ['attachments', 'upload', 'note.txt']);
  assert.deepEqual([alone.fileName, alone.sessionId], ['note.txt', null]);

  const list = (args: readonly string[] = []) => json<Descriptor[]>(folder, ['attachments', 'list', ...args]);
  const all = await list();
  assert.equal(all[0]?.id, alone.id);
  const ofTrip = await list(['--session-id', 'trip']);
  assert.deepEqual(
    ofTrip.map(({ fileName }) => fileName),
    ['note.txt', 'dot.png'],
  );

  const image = ofTrip[1]?.id ?? '';
  const got = await folder.acp(['attachments', 'get', image, '-o', 'copy.png']);
  assert.deepEqual([got.code, got.stdout], [0, '']);
  assert.deepEqual(readFileSync(join(folder.path, 'copy.png')), png);
  assert.equal(statSync(join(folder.path, 'copy.png')).mode & 0o777, 0o600);
  const printed = await folder.acp(['attachments', 'get', alone.id]);
  assert.equal(printed.stdout, 'Grüße aus Wien\n');

  assert.equal((await folder.acp(['attachments', 'delete', image])).code, 0);
  const again = await folder.acp(['attachments', 'delete', image]);
  assert.equal(again.code, 4);
  assert.match(again.stderr, /was not found/);
  const gone = await folder.acp(['attachments', 'get', image, '-o', 'gone.png']);
  assert.equal(gone.code, 4);
  assert.equal(existsSync(join(folder.path, 'gone.png')), false);
  assert.equal((await list()).length, 2);
});

inBothWays('what cannot be read, sent or written is told, and leaves nothing behind', async (folder) => {
  const missing = await folder.acp(['attachments', 'upload', 'nothing.txt']);
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /nothing\.txt/);
  folder.write('empty.txt', '');
  assert.match((await folder.acp(['attachments', 'upload', 'empty.txt'])).stderr, /is empty/);
  folder.write('program', 'MZ\0\0');
  assert.match((await folder.acp(['attachments', 'upload', 'program'])).stderr, /not allowed here/);
  const { id } = await json<Descriptor>(folder, ['attachments', 'upload', 'note.txt']);
  const before = readdirSync(folder.path);
  const unwritable = await folder.acp(['attachments', 'get', id, '-o', 'no/such/folder.txt']);
  assert.equal(unwritable.code, 2);
  assert.match(unwritable.stderr, /no\/such\/folder\.txt cannot be written/);
  assert.deepEqual(readdirSync(folder.path), before);
  assert.equal((await json<Descriptor[]>(folder, ['attachments', 'list'])).length, 1);
});

inBothWays('ATT-11 run --attach uploads the files and names them in the run', async (folder) => {
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const args = ['run', 'hello', 'Look.', '--attach', 'note.txt', '--attach', 'dot.png', '--session', 'trip'];
  const answer = await folder.acp(args);
  assert.equal(answer.code, 0, answer.stderr);
  assert.match(answer.stdout, /Hello there\./);
  const list = await json<Descriptor[]>(folder, ['attachments', 'list', '--session-id', 'trip']);
  assert.deepEqual(
    list.map(({ fileName }) => fileName),
    ['dot.png', 'note.txt'],
  );
  const session = await json<{ messages: { contents: { type: string; attachmentId?: string }[] }[] }>(folder, [
    'sessions',
    'get',
    'trip',
  ]);
  const named = session.messages[0]?.contents.flatMap(({ attachmentId }) => attachmentId ?? []);
  assert.deepEqual(named?.toSorted(), list.map(({ id }) => id).toSorted());
});

inBothWays('run --attach with a file that is refused starts no run', async (folder) => {
  await folder.acp(['agents', 'apply', '-f', 'hello.yaml']);
  const refused = await folder.acp(['run', 'hello', 'Look.', '--attach', 'nothing.txt', '--attach', 'note.txt']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /nothing\.txt/);
  assert.deepEqual(await json(folder, ['runs', 'list']), []);
  assert.deepEqual(await json(folder, ['attachments', 'list']), []);
});

test('db check and db backup name what is lost, with exit code 1, and mention what is only left over', async (t) => {
  const folder = createFolder(t);
  folder.write('lost.txt', 'lost');
  const upload = (file: string) => json<Descriptor & { sha256: string }>(folder, ['attachments', 'upload', file]);
  const lost = await upload('lost.txt');
  const data = join(folder.path, 'data');
  const found = readdirSync(data, { recursive: true, encoding: 'utf8' }).find((path) => path.endsWith(lost.sha256));
  assert.ok(found !== undefined);
  renameSync(join(data, found), join(data, found.replace(lost.sha256, 'f'.repeat(64))));
  const backup = await folder.acp(['db', 'backup', 'copy.db']);
  assert.equal(backup.code, 1);
  assert.match(
    backup.stdout,
    new RegExp(`^.*copy\\.db {2}\\d+ bytes\n✗ The file .* of attachment ${lost.id} is missing\\.\n$`),
  );
  const check = await folder.acp(['db', 'check']);
  assert.equal(check.code, 1);
  assert.match(check.stdout, new RegExp(`^✗ The file .* of attachment ${lost.id} is missing\\.\n$`));
  assert.match(check.stderr, /^1 file in .*acp\.db-attachments without an attachment/);
  assert.equal((await folder.acp(['attachments', 'delete', lost.id])).code, 0);
  const sound = await folder.acp(['db', 'check']);
  assert.equal(sound.code, 0, 'what is left over is no finding');
  assert.match(sound.stdout, /is sound/);
});
