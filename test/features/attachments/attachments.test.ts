import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { AcpError } from '../../../src/contract/errors.ts';
import { forEachService, forEachServiceInFile, overHttp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { fileOf, pdf, png, readAll, recognized } from './files.ts';

const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
const folderOf = (app: TestApp): string => join(app.folder, 'data', 'acp.db-attachments');
/** Every file of the content folder, drafts included. */
const filesOf = (app: TestApp): string[] =>
  existsSync(folderOf(app))
    ? readdirSync(folderOf(app), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : [];

const upload = async (app: TestApp, content: string | Uint8Array, name: string | null = 'a.txt', sessionId?: string) =>
  (
    await app.client.attachments.upload({
      query: sessionId === undefined ? {} : { sessionId },
      file: fileOf(content, name),
    })
  ).body;

const refusal = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof AcpError, String(error));
    return `${error.status} ${error.code}`;
  }
  return assert.fail('nothing was refused');
};

forEachService('ATT-1 ATT-5 an upload is answered with its descriptor', async (open) => {
  const app = await open();
  const { status, body, headers } = await app.client.attachments.upload({
    query: { sessionId: 's-1' },
    file: fileOf(png, 'C:\\pictures\\über 1.png'),
  });
  assert.equal(status, 201);
  assert.equal(headers['location'], `/api/attachments/${body.id}`);
  const { id, createdAt, ...rest } = body;
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.match(createdAt, /Z$/);
  assert.deepEqual(rest, {
    tenantId: 'default',
    sessionId: 's-1',
    runId: null,
    fileName: 'über 1.png',
    mediaType: 'image/png',
    byteSize: png.length,
    sha256: sha256(png),
    createdBy: null,
  });
});

forEachService('ATT-5 a name keeps its last segment, loses control characters and ends after 255', async (open) => {
  const app = await open();
  const named = async (name: string | null, content: string | Uint8Array = 'text') =>
    (await upload(app, content, name)).fileName;
  assert.equal(await named('../../etc/passwd'), 'passwd');
  assert.equal(await named('a\u0001b\u007f.txt'), 'ab.txt');
  assert.equal(await named('a\u0000b.txt'), 'ab.txt');
  assert.equal(await named(null), 'file.txt');
  assert.equal(await named('folder/', png), 'file.png');
  assert.equal((await named(`${'x'.repeat(254)}😀.txt`)).length, 254);
});

forEachService('ATT-2 the limit is accepted, one byte more is not, and nothing of it is kept', async (open) => {
  const app = await open({ service: { Attachments: { MaxBytes: 100_000 } } });
  const text = 'x'.repeat(100_000);
  assert.equal((await upload(app, text)).byteSize, 100_000);
  const before = filesOf(app);
  assert.equal(await refusal(upload(app, `${text}y`)), '413 attachment-too-large');
  assert.equal(await refusal(upload(app, 'x'.repeat(3_000_000))), '413 attachment-too-large');
  assert.deepEqual(filesOf(app), before);
  assert.equal((await app.client.attachments.list()).body.length, 1);
});

forEachService('ATT-1 an empty file is refused', async (open) => {
  const app = await open();
  assert.equal(await refusal(upload(app, '')), '400 file-empty');
  assert.deepEqual(filesOf(app), []);
});

forEachService('ATT-3 ATT-7 every kind of file is kept as what its bytes say, or refused by name', async (open) => {
  const app = await open();
  for (const [name, type, content] of recognized) {
    const sent = upload(app, content, 'lies.png');
    if (type === null) assert.equal(await refusal(sent), '415 media-type-not-allowed', name);
    else assert.equal((await sent).mediaType, type, name);
  }
  const zip = recognized.find(([name]) => name === 'a ZIP')?.[2] ?? new Uint8Array();
  await assert.rejects(upload(app, zip), /application\/zip/);
  await assert.rejects(upload(app, 'nul \0'), /application\/octet-stream/);
  assert.equal(filesOf(app).filter((file) => file.startsWith(join(folderOf(app), 'tmp'))).length, 0);
});

forEachService('ATT-3 ATT-8 what is recognized and not allowed is refused', async (open) => {
  const app = await open({ service: { Attachments: { AllowedMediaTypes: ['IMAGE/PNG', 'audio/*'] } } });
  assert.equal((await upload(app, png)).mediaType, 'image/png');
  assert.equal((await upload(app, Buffer.from('OggS and so on'))).mediaType, 'audio/ogg');
  await assert.rejects(upload(app, pdf), /application\/pdf/);
  assert.equal(await refusal(upload(app, 'text')), '415 media-type-not-allowed');
});

forEachService('ATT-4 a session id has its form', async (open) => {
  const app = await open();
  assert.equal(await refusal(upload(app, 'a', 'a', 'no spaces')), '400 validation-failed');
});

forEachServiceInFile('ATT-6 equal bytes are two attachments; deleting one leaves the other', async (open) => {
  const app = await open();
  const [first, second] = [await upload(app, 'same'), await upload(app, 'same')];
  assert.notEqual(first.id, second.id);
  assert.equal(filesOf(app).length, 1);
  await app.client.attachments.remove({ params: { id: first.id } });
  const kept = await app.client.attachments.download({ params: { id: second.id } });
  assert.equal((await readAll(kept.bytes)).toString(), 'same');
  assert.equal(await refusal(app.client.attachments.download({ params: { id: first.id } })), '404 not-found');
  await app.client.attachments.remove({ params: { id: second.id } });
  assert.deepEqual(filesOf(app), []);
});

forEachService('ATT-6 equal bytes that come and go at once are there for whoever has a row', async (open) => {
  const app = await open();
  const ids = new Set<string>();
  await Promise.all(
    Array.from({ length: 40 }, async (_, index) => {
      const { id } = await upload(app, 'contested');
      if (index % 2 === 0) await app.client.attachments.remove({ params: { id } });
      else ids.add(id);
    }),
  );
  for (const id of ids)
    assert.equal(
      (await readAll((await app.client.attachments.download({ params: { id } })).bytes)).toString(),
      'contested',
    );
  for (const id of ids) await app.client.attachments.remove({ params: { id } });
  assert.deepEqual(filesOf(app), []);
});

forEachService('ATT-12 the list is newest first, by session where asked, and paged within its bounds', async (open) => {
  const app = await open();
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1)
    ids.unshift((await upload(app, `text ${index}`, 'a', index % 2 === 0 ? 'even' : undefined)).id);
  const list = async (query: Record<string, unknown> = {}) =>
    (await app.client.attachments.list({ query })).body.map(({ id }) => id);
  assert.deepEqual(await list(), ids);
  assert.deepEqual(
    await list({ sessionId: 'even' }),
    ids.filter((_, index) => index % 2 === 0),
  );
  assert.deepEqual(await list({ sessionId: 'none' }), []);
  assert.deepEqual(await list({ skip: 1, take: 2 }), ids.slice(1, 3));
  assert.deepEqual(await list({ skip: -1, take: 0 }), ids.slice(0, 1));
  assert.equal((await list({ take: 999_999 })).length, 5);
});

forEachService('ATT-13 a download has its headers, and is not sent again to whoever has it', async (open) => {
  const app = await open();
  const { id } = await upload(app, png, 'Wien, (Größe) 50%.png');
  const { status, headers, bytes } = await app.client.attachments.download({ params: { id } });
  assert.equal(status, 200);
  assert.deepEqual(await readAll(bytes), png);
  const tag = `"${sha256(png)}"`;
  assert.equal(headers['content-type'], 'image/png');
  assert.equal(headers['content-length'], String(png.length));
  assert.equal(headers['etag'], tag);
  assert.equal(headers['cache-control'], 'private, no-cache');
  assert.equal(
    headers['content-disposition'],
    `attachment; filename="Wien, (Gr__e) 50_.png"; filename*=UTF-8''Wien%2C%20%28Gr%C3%B6%C3%9Fe%29%2050%25.png`,
  );
  for (const given of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
    const again = await app.client.attachments.download({ params: { id }, headers: { 'if-none-match': given } });
    assert.equal(again.status, 304, given);
    assert.equal(again.headers['etag'], tag);
    assert.equal(again.bytes, undefined);
  }
  const changed = await app.client.attachments.download({ params: { id }, headers: { 'if-none-match': '"other"' } });
  assert.equal((await readAll(changed.bytes)).length, png.length);
});

forEachService('ATT-15 ATT-16 what is gone, and what never was, is one 404', async (open) => {
  const app = await open();
  const { id } = await upload(app, 'text');
  assert.equal((await app.client.attachments.remove({ params: { id: id.toUpperCase() } })).status, 204);
  for (const gone of [id, '018f0000-0000-7000-8000-000000000000']) {
    assert.equal(await refusal(app.client.attachments.remove({ params: { id: gone } })), '404 not-found');
    assert.equal(await refusal(app.client.attachments.download({ params: { id: gone } })), '404 not-found');
  }
  assert.equal(await refusal(app.client.attachments.download({ params: { id: 'no-uuid' } })), '400 validation-failed');
});

overHttp('ATT-15 another tenant neither sees nor deletes it, and equal bytes are not shared', async (open) => {
  const app = await open({
    host: { Tenancy: { Enabled: true, AllowHeaderResolution: true, AllowedTenants: ['a', 'b'] } },
  });
  const call = (tenant: string, method: string, path = '', body?: FormData) =>
    fetch(`${app.url}/api/attachments${path}`, {
      method,
      headers: { 'x-service-tenant': tenant },
      ...(body ? { body } : {}),
    });
  const form = (): FormData => {
    const data = new FormData();
    data.set('file', new Blob(['shared']), 'a.txt');
    return data;
  };
  const { id } = (await (await call('a', 'POST', '', form())).json()) as { id: string };
  assert.equal((await call('b', 'POST', '', form())).status, 201);
  assert.equal(filesOf(app).length, 2);
  assert.equal((await call('b', 'GET', `/${id}`)).status, 404);
  assert.equal((await call('b', 'DELETE', `/${id}`)).status, 404);
  assert.equal(((await (await call('b', 'GET')).json()) as unknown[]).length, 1);
  assert.equal((await call('a', 'DELETE', `/${id}`)).status, 204);
  assert.equal(filesOf(app).length, 1);
});

forEachServiceInFile('an attachment lies outside the database, for the account of the service alone', async (open) => {
  const app = await open();
  await upload(app, Buffer.alloc(5_000_000, 'x'));
  const [file] = filesOf(app);
  assert.ok(file !== undefined);
  assert.equal(statSync(file).size, 5_000_000);
  assert.equal(statSync(file).mode & 0o077, 0);
  assert.equal(statSync(folderOf(app)).mode & 0o077, 0);
  assert.ok(statSync(join(app.folder, 'data', 'acp.db')).size < 1_000_000);
});

forEachService('a memory store keeps attachments in memory', async (open) => {
  const app = await open({ service: { Persistence: { Provider: 'Memory' } } });
  const { id } = await upload(app, png);
  assert.deepEqual(await readAll((await app.client.attachments.download({ params: { id } })).bytes), png);
  await app.client.attachments.remove({ params: { id } });
  assert.equal(await refusal(app.client.attachments.download({ params: { id } })), '404 not-found');
  assert.deepEqual(filesOf(app), []);
});

overHttp('ATT-6 bytes without a row, and what was being received, go with the next start', async (open) => {
  const first = await open();
  const { id } = await upload(first, 'kept');
  const { id: lost } = await upload(first, 'orphaned');
  const orphaned = filesOf(first).find((file) => basename(file) === sha256(Buffer.from('orphaned')));
  assert.ok(orphaned !== undefined);
  const bytes = readFileSync(orphaned);
  await first.client.attachments.remove({ params: { id: lost } });
  await first.close();
  // As after a crash between the removal of the row and that of its bytes.
  writeFileSync(orphaned, bytes);
  mkdirSync(join(folderOf(first), 'tmp'), { recursive: true });
  writeFileSync(join(folderOf(first), 'tmp', 'half'), 'half a file');
  assert.equal(filesOf(first).length, 3);
  const app = await open({ folder: first.folder });
  assert.equal((await readAll((await app.client.attachments.download({ params: { id } })).bytes)).toString(), 'kept');
  const swept = await eventually('the sweep', () => app.log.find(({ message }) => /nothing names/.test(message)));
  assert.equal(swept.fields['removed'], 1);
  const kept = sha256(Buffer.from('kept'));
  assert.deepEqual(
    filesOf(app).map((file) => basename(file)),
    [kept],
  );
});

forEachService('ATT-19 neither an upload nor a delete leaves an audit entry', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const entries = async () => (await app.client.audit.list({ query: {} })).body.map(({ action }) => ({ action }));
  const before = await entries();
  assert.ok(before.length > 0, 'the audit trail is on');
  const { id } = await upload(app, 'text');
  await app.client.attachments.remove({ params: { id } });
  assert.deepEqual(await entries(), before);
});
