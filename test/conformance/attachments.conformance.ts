import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { pdf, png, recognized, wav } from '../features/attachments/files.ts';
import { type Answer, type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';
import { enqueue, getRun, logOf } from './run-calls.ts';

const unknownId = '0190b6a2-0000-7000-8000-000000000000';
const sha256 = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');
const bytesOf = (content: string | Uint8Array): Buffer => Buffer.from(content);

/** A form of one file, whose part lies about the type. */
const formOf = (content: string | Uint8Array, name = 'a.txt'): FormData => {
  const form = new FormData();
  form.set('file', new Blob([Uint8Array.from(bytesOf(content))], { type: 'image/png' }), name);
  return form;
};
const send = (api: Api, raw: FormData | string, query = '', headers: Record<string, string> = {}): Promise<Answer> =>
  api.call('POST', `/api/attachments${query}`, undefined, { raw, headers });
const upload = async (api: Api, content: string | Uint8Array, name?: string, sessionId?: string): Promise<Body> => {
  const answer = await send(api, formOf(content, name), sessionId === undefined ? '' : `?sessionId=${sessionId}`);
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
};
const idsOf = async (api: Api, query = ''): Promise<string[]> => {
  const answer = await api.get(`/api/attachments${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.map(({ id }: Body) => id);
};
const download = async (api: Api, id: string): Promise<Buffer> => {
  const response = await api.fetch('GET', `/api/attachments/${id}`);
  assert.equal(response.status, 200);
  return Buffer.from(await response.arrayBuffer());
};
const path = (id: string): string => `/api/attachments/${id}`;

rule('ATT-1', 'the body is a form with exactly one file part "file", which is not empty', async (api) => {
  const { id } = await upload(api, 'text');
  assert.match(id, /^[0-9a-f-]{36}$/);
  for (const type of ['application/json', 'text/plain', 'multipart/mixed; boundary=b'])
    assertProblem(await send(api, '{}', '', { 'content-type': type }), 415, 'unsupported-media-type');
  const [none, field, several, ignored] = [new FormData(), new FormData(), formOf('one'), formOf('text')];
  none.set('note', 'text');
  field.set('file', 'a field, no file');
  several.append('file', new Blob(['two']), 'b.txt');
  ignored.append('note', 'text');
  ignored.append('thumbnail', new Blob([Uint8Array.from(png)]), 'b.png');
  for (const form of [none, field, several]) assertProblem(await send(api, form), 400, 'file-required');
  assertProblem(await send(api, formOf('')), 400, 'file-empty');
  const answer = await send(api, ignored);
  assert.deepEqual([answer.status, answer.body.mediaType, answer.body.byteSize], [201, 'text/plain', 4]);
  assert.match(answer.headers.get('location') ?? '', new RegExp(`/api/attachments/${answer.body.id}$`));
});

const limited = {
  settings: { 'Service:Attachments:MaxBytes': '1000', 'Service:SessionOwnership:Enabled': 'true' },
};

rule(
  'ATT-2',
  'exactly the limit is accepted, one byte more is 413 and leaves nothing',
  async (api) => {
    assert.equal((await upload(api, 'x'.repeat(1000))).byteSize, 1000);
    const before = await idsOf(api);
    for (const size of [1001, 500_000])
      assertProblem(await send(api, formOf('x'.repeat(size))), 413, 'attachment-too-large');
    assert.deepEqual(await idsOf(api), before);
  },
  limited,
);

rule('ATT-3 ATT-7 ATT-8', 'the bytes tell the type; what they do not tell is 415, by name', async (api) => {
  for (const [name, type, content] of recognized) {
    const answer = await send(api, formOf(content, 'lies.png'));
    if (type === null) assertProblem(answer, 415, 'media-type-not-allowed');
    else assert.deepEqual([answer.status, answer.body.mediaType], [201, type], name);
  }
  const zip = recognized.find(([name]) => name === 'a ZIP')?.[2] ?? new Uint8Array();
  const refused = assertProblem(await send(api, formOf(zip, 'a.txt')), 415, 'media-type-not-allowed');
  assert.match(refused.detail, /application\/zip/);
});

rule('ATT-4', 'a session id has its form, and the session need not exist', async (api) => {
  for (const sessionId of ['no spaces', 'x'.repeat(129), ''])
    assertProblem(await send(api, formOf('text'), `?sessionId=${sessionId}`), 400, 'validation-failed');
  const sessionId = `${'x'.repeat(100)}._:-${unique('s')}`;
  assert.equal((await upload(api, 'text', 'a', sessionId)).sessionId, sessionId);
  assertProblem(await api.get(`/api/sessions/${sessionId}`), 404, 'session-not-found');
  assert.equal((await upload(api, 'text')).sessionId, null);
});

rule('ATT-5', 'the name is the last segment, without control characters, of at most 255', async (api) => {
  const named = async (name: string, content: string | Uint8Array = 'text') =>
    (await upload(api, content, name)).fileName;
  assert.equal(await named('../../etc/passwd'), 'passwd');
  assert.equal(await named('C:\\pictures\\über 1.png', png), 'über 1.png');
  assert.equal(await named('a\u0001b.txt'), 'ab.txt');
  assert.equal(await named('folder/', png), 'file.png');
  assert.equal((await named(`${'x'.repeat(300)}.txt`)).length, 255);
});

rule('ATT-6', 'equal bytes are attachments of their own, and deleting one leaves the other', async (api) => {
  const [first, second] = [await upload(api, 'same bytes'), await upload(api, 'same bytes')];
  assert.notEqual(first.id, second.id);
  assert.deepEqual([first.sha256, second.sha256], [sha256(bytesOf('same bytes')), first.sha256]);
  assert.equal((await api.del(path(first.id))).status, 204);
  assert.equal((await download(api, second.id)).toString(), 'same bytes');
});

rule('ATT-9', 'a tool saves files for its run and session, by the same rules', async (api) => {
  const agent = await api.agent({ toolNames: ['draw'] });
  const sessionId = unique('session');
  const draw = (content: Uint8Array, fileName: string) =>
    api.run(agent, {
      message: `call draw ${JSON.stringify({ content: Buffer.from(content).toString('base64'), fileName })}`,
      sessionId,
    });
  // More than a tool may answer with, as a file.
  const large = Buffer.concat([png, Buffer.alloc(5000)]);
  const { body: run } = await draw(large, 'x/drawing.png');
  const saved = JSON.parse(run.output);
  assert.deepEqual(
    [saved.runId, saved.sessionId, saved.fileName, saved.mediaType, saved.byteSize],
    [run.runId, sessionId, 'drawing.png', 'image/png', large.length],
  );
  assert.deepEqual(await idsOf(api, `?sessionId=${sessionId}`), [saved.id]);
  assert.deepEqual(await download(api, saved.id), large);
  assert.match((await draw(bytesOf('MZ\0\0'), 'a.exe')).body.output, /not allowed here/);
  assert.match((await draw(bytesOf(''), 'a.txt')).body.output, /empty/);
  assert.deepEqual(await idsOf(api, `?sessionId=${sessionId}`), [saved.id]);
});

rule('ATT-10', 'a run gives its attachments to the model, text as a named document', async (api) => {
  const agent = await api.agent();
  const text = await upload(api, 'Grüß Gott', 'hello.txt');
  const { body } = await api.run(agent, { message: 'read it', attachmentIds: [text.id] });
  assert.equal(body.output, 'hello.txt: Grüß Gott');
  const files = [await upload(api, png, 'a.png'), await upload(api, pdf, 'a.pdf'), await upload(api, wav, 'a.wav')];
  const attachmentIds = files.map(({ id }) => id);
  assert.equal((await api.run(agent, { message: 'Look.', attachmentIds })).body.status, 'Completed');
  const estimate = async (more: object) =>
    (await api.post(`/api/agents/${agent}/estimate`, { message: 'Look.', ...more })).body.promptTokens;
  assert.equal(await estimate({ attachmentIds }), (await estimate({})) + 3 * 1024);
  for (const ids of [[unknownId], [text.id, unknownId]])
    assertProblem(await api.run(agent, { message: 'read it', attachmentIds: ids }), 400, 'attachment-not-found');
});

rule('ATT-10 ATT-16', 'a queued run whose attachment is there reads it when it starts', async (api) => {
  const agent = await api.agent();
  const { id } = await upload(api, 'in line', 'a.txt');
  const runId = await enqueue(api, agent, { message: 'read it', attachmentIds: [id] });
  assert.equal((await logOf(api, runId)).at(-1)?.event, 'run.completed');
  assert.equal((await api.del(path(id))).status, 204);
  assert.equal((await getRun(api, runId)).status, 'Completed');
  assertProblem(await api.run(agent, { message: 'read it', attachmentIds: [id] }), 400, 'attachment-not-found');
});

rule('ATT-11', 'a run with a session links what it names, and another session cannot name it', async (api) => {
  const agent = await api.agent();
  const [mine, other] = [unique('session'), unique('session')];
  const { id } = await upload(api, 'text');
  const name = (sessionId: string | null) =>
    api.run(agent, { message: 'read it', attachmentIds: [id], ...(sessionId === null ? {} : { sessionId }) });
  assert.equal((await name(null)).status, 200);
  assert.deepEqual(await idsOf(api, `?sessionId=${mine}`), []);
  assert.equal((await name(mine)).status, 200);
  assert.deepEqual(await idsOf(api, `?sessionId=${mine}`), [id]);
  for (const sessionId of [other, null]) assertProblem(await name(sessionId), 400, 'attachment-not-found');
  assert.equal((await name(mine)).status, 200);
});

rule('ATT-12', 'the list has descriptors, newest first, narrowed and paged within its bounds', async (api) => {
  const tenant = api.inTenant(unique('tenant'));
  const ids: string[] = [];
  for (let index = 0; index < 5; index += 1)
    ids.unshift((await upload(tenant, `text ${index}`, 'a.txt', index % 2 === 0 ? 'even' : undefined)).id);
  assert.deepEqual(await idsOf(tenant), ids);
  assert.deepEqual(
    await idsOf(tenant, '?sessionId=even'),
    ids.filter((_, index) => index % 2 === 0),
  );
  assert.deepEqual(await idsOf(tenant, '?skip=1&take=2'), ids.slice(1, 3));
  assert.deepEqual(await idsOf(tenant, '?skip=-1&take=0'), ids.slice(0, 1));
  assert.deepEqual(await idsOf(tenant, '?take=999999'), ids);
  const [newest] = (await tenant.get('/api/attachments?take=1')).body;
  assert.deepEqual(Object.keys(newest).sort(), [
    'byteSize',
    'createdAt',
    'createdBy',
    'fileName',
    'id',
    'mediaType',
    'runId',
    'sessionId',
    'sha256',
    'tenantId',
  ]);
});

rule('ATT-13', 'a download has its headers, 304 for whoever has it, and no ranges', async (api) => {
  const { id } = await upload(api, png, 'Größe, 1.png');
  const response = await api.fetch('GET', path(id), undefined, { headers: { range: 'bytes=0-3' } });
  assert.equal(response.status, 200);
  assert.deepEqual(Buffer.from(await response.arrayBuffer()), png);
  const tag = `"${sha256(png)}"`;
  const expected = {
    'content-type': 'image/png',
    'content-length': String(png.length),
    etag: tag,
    'content-disposition': `attachment; filename="Gr__e, 1.png"; filename*=UTF-8''Gr%C3%B6%C3%9Fe%2C%201.png`,
    'x-content-type-options': 'nosniff',
    'cache-control': 'private, no-cache',
  };
  for (const [name, value] of Object.entries(expected)) assert.equal(response.headers.get(name), value, name);
  for (const given of [tag, `W/${tag}`, `"other", ${tag}`, '*']) {
    const again = await api.get(path(id), { headers: { 'if-none-match': given } });
    assert.deepEqual([again.status, again.text, again.headers.get('etag')], [304, '', tag], given);
  }
  const changed = await api.get(path(id), { headers: { 'if-none-match': '"other"' } });
  assert.equal(changed.status, 200);
});

rule(
  'ATT-14',
  'an address alone shows nothing: the credential travels in a header only',
  async (api) => {
    const { id } = await upload(api, 'text');
    const key = await api.post('/api/api-keys', { name: unique('key'), role: 'Reader', scopes: ['RunsRead'] });
    const secret = key.body.plaintextKey as string;
    assert.equal((await api.as(secret).get(path(id))).status, 200);
    const nobody = api.as(null);
    for (const name of ['access_token', 'token', 'api_key', 'key', 'authorization'])
      assert.equal((await nobody.get(`${path(id)}?${name}=${encodeURIComponent(secret)}`)).status, 401, name);
    assert.equal((await nobody.get(path(id), { headers: { cookie: `authorization=${secret}` } })).status, 401);
  },
  { shares: true },
);

/** One answer for an id that was never there, and one that is not the caller's. */
const assertUnknown = async (api: Api, id: string): Promise<void> => {
  for (const method of ['GET', 'DELETE']) {
    const [theirs, unknown] = [await api.call(method, path(id)), await api.call(method, path(unknownId))];
    const { requestId: _theirs, ...problem } = assertProblem(theirs, 404, 'not-found');
    const { requestId: _unknown, ...expected } = assertProblem(unknown, 404, 'not-found');
    assert.deepEqual(JSON.parse(JSON.stringify(problem).replaceAll(id, unknownId)), expected);
  }
};

rule('ATT-15', "another tenant's attachment is an unknown one", async (api) => {
  const [mine, other] = [api.inTenant(unique('tenant')), api.inTenant(unique('tenant'))];
  const { id, tenantId } = await upload(mine, 'text');
  assert.match(tenantId, /^tenant-/);
  await assertUnknown(other, id);
  assert.deepEqual(await idsOf(other), []);
  assertProblem(await mine.get(path('no-uuid')), 400, 'validation-failed');
  assert.equal((await mine.del(path(id))).status, 204);
});

rule(
  'ATT-4 ATT-15',
  "with ownership, another's session takes no upload, and its attachments are unknown",
  async (api) => {
    const scopes = ['RunsRead', 'RunsWrite'];
    const [ann, ben] = [await api.withKey('Operator', scopes), await api.withKey('Operator', scopes)];
    const agent = await api.agent();
    const sessionId = unique('session');
    assert.equal((await ann.run(agent, { message: 'Hi', sessionId })).status, 200);
    assertProblem(await send(ben, formOf('text'), `?sessionId=${sessionId}`), 403, 'session-not-owned');
    const linked = await upload(ann, 'linked', 'a.txt', sessionId);
    const alone = await upload(ann, 'alone');
    for (const { id } of [linked, alone]) {
      await assertUnknown(ben, id);
      const run = await ben.run(agent, { message: 'read it', attachmentIds: [id] });
      assertProblem(run, 400, 'attachment-not-found');
    }
    assert.deepEqual(await idsOf(ben), []);
    assert.deepEqual(await idsOf(ann), [alone.id, linked.id]);
    assert.equal((await download(api, linked.id)).toString(), 'linked');
  },
  limited,
);

rule('ATT-16', 'delete takes the bytes at once; messages keep a reference that leads nowhere', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  const { id } = await upload(api, png, 'a.png');
  const { body: run } = await api.run(agent, { message: 'Look.', sessionId, attachmentIds: [id] });
  assert.equal((await api.del(path(id))).status, 204);
  await assertUnknown(api, id);
  const reference = { type: 'Attachment', attachmentId: id, mediaType: 'image/png', fileName: 'a.png' };
  const named = ({ messages }: Body): Body[] =>
    messages.flatMap(({ contents }: Body) => contents).filter(({ type }: Body) => type === 'Attachment');
  assert.deepEqual(named((await api.get(`/api/sessions/${sessionId}`)).body), [reference]);
  assert.deepEqual(named((await api.get(`/api/runs/${run.runId}/input`)).body), [reference]);
  assert.equal((await api.run(agent, { message: 'And now?', sessionId })).status, 200);
});

rule('ATT-17', 'a session takes its attachments with it, and no others', async (api) => {
  const agent = await api.agent();
  const sessionId = unique('session');
  const [linked, kept] = [await upload(api, 'same text'), await upload(api, 'same text')];
  await api.run(agent, { message: 'Hi', sessionId, attachmentIds: [linked.id] });
  const own = await upload(api, 'own', 'a.txt', sessionId);
  assert.equal((await api.del(`/api/sessions/${sessionId}`)).status, 204);
  for (const { id } of [linked, own]) await assertUnknown(api, id);
  assert.equal((await download(api, kept.id)).toString(), 'same text');
});
