import assert from 'node:assert/strict';
import { AcpError } from '../../../src/contract/errors.ts';
import type { RunAuthorizationRequest } from '../../../src/features/modules/index.ts';
import { forEachService, type OpenApp, type TestApp } from '../../support/app.ts';
import { makeKey, removeSession, say, token } from '../sessions/session-calls.ts';
import { fileOf, readAll } from './files.ts';

type Client = TestApp['client'];

const upload = async (client: Client, content: string, sessionId?: string): Promise<string> =>
  (await client.attachments.upload({ query: sessionId === undefined ? {} : { sessionId }, file: fileOf(content) })).body
    .id;
const idsOf = async (client: Client, sessionId?: string): Promise<string[]> =>
  (await client.attachments.list({ query: sessionId === undefined ? {} : { sessionId } })).body.map(({ id }) => id);
const download = async (client: Client, id: string): Promise<string> =>
  (await readAll((await client.attachments.download({ params: { id } })).bytes)).toString();
const remove = (client: Client, id: string) => client.attachments.remove({ params: { id } });
const runWith = (client: Client, id: string, sessionId?: string) =>
  client.runs.start({
    params: { name: 'helper' },
    body: { message: 'Look.', stream: false, attachmentIds: [id], ...(sessionId === undefined ? {} : { sessionId }) },
  });

const refusal = async (work: Promise<unknown>): Promise<{ answer: string; detail: string }> => {
  try {
    await work;
  } catch (error) {
    assert.ok(error instanceof AcpError, String(error));
    return { answer: `${error.status} ${error.code}`, detail: error.message };
  }
  return assert.fail('nothing was refused');
};

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

/** To download, delete and name in a run: answered as an id that was never there, word for word. */
const assertUnknown = async (client: Client, id: string): Promise<void> => {
  for (const call of [download, remove, runWith]) {
    const [theirs, unknown] = [await refusal(call(client, id)), await refusal(call(client, unknownId))];
    assert.equal(theirs.answer, call === runWith ? '400 attachment-not-found' : '404 not-found');
    assert.deepEqual({ ...theirs, detail: theirs.detail.replaceAll(id, unknownId) }, unknown);
  }
};

const openOwned = async (open: OpenApp) => {
  const app = await open({
    host: { AuthToken: token },
    token,
    service: { SessionOwnership: { Enabled: true } },
    agents: [{ name: 'helper' }],
  });
  const [ann, ben, admin] = [
    await makeKey(app, 'ann'),
    await makeKey(app, 'ben'),
    await makeKey(app, 'admin', 'Admin'),
  ];
  return { app, ann: ann.client, ben: ben.client, admin: admin.client };
};

forEachService("ATT-4 nobody uploads into another's session; one that does not exist is nobody's", async (open) => {
  const { app, ann, ben, admin } = await openOwned(open);
  await say(ann, 'a');
  for (const other of [ben, admin, app.client])
    assert.equal((await refusal(upload(other, 'text', 'a'))).answer, '403 session-not-owned');
  assert.deepEqual(await idsOf(admin), []);
  assert.deepEqual(await idsOf(ann), []);
  await upload(ann, 'text', 'a');
  await upload(ben, 'text', 'not-yet');
  assert.equal((await idsOf(admin)).length, 2);
});

forEachService("ATT-15 SESS-28 another's attachment is unknown, and a manager's to see", async (open) => {
  const { ann, ben, admin } = await openOwned(open);
  await say(ann, 'a');
  const linked = await upload(ann, 'linked', 'a');
  const alone = await upload(ann, 'alone');
  for (const id of [linked, alone]) await assertUnknown(ben, id);
  assert.deepEqual([await idsOf(ben), await idsOf(ben, 'a')], [[], []]);
  assert.deepEqual(await idsOf(ann), [alone, linked]);
  assert.deepEqual(await idsOf(ann, 'a'), [linked]);
  assert.deepEqual(await idsOf(admin), [alone, linked]);
  assert.deepEqual([await download(admin, linked), await download(ann, alone)], ['linked', 'alone']);
  const own = await upload(ben, 'own');
  assert.deepEqual(await idsOf(ben), [own], 'narrowed before paging');
  assert.equal((await runWith(ann, linked, 'a')).status, 200);
  await remove(admin, linked);
  await remove(ann, alone);
  await assertUnknown(ann, linked);
});

forEachService('ATT-15 an attachment is of whoever owns its session, and of its uploader without one', async (open) => {
  const { ann, ben } = await openOwned(open);
  const early = await upload(ann, 'early', 's');
  assert.equal(await download(ann, early), 'early');
  await assertUnknown(ben, early);
  // The session comes to be somebody else's: with it comes what it was given.
  await say(ben, 's');
  assert.equal(await download(ben, early), 'early');
  assert.deepEqual([await idsOf(ben), await idsOf(ann)], [[early], []]);
  await assertUnknown(ann, early);
  await removeSession(ben, 's');
  await assertUnknown(ben, early);
});

/** A handler that notes what it is asked and obeys `decide`, which a test may change. */
const recording = () => {
  const asked: RunAuthorizationRequest[] = [];
  const policy: { decide: (request: RunAuthorizationRequest) => boolean } = { decide: () => true };
  const runAuthorization = {
    async authorize(request: RunAuthorizationRequest) {
      asked.push(request);
      return { allowed: policy.decide(request) };
    },
  };
  return { asked, policy, module: { runAuthorization } };
};

forEachService('ATT-15 the host refuses an upload or a list with 403, one attachment as unknown', async (open) => {
  const { asked, policy, module } = recording();
  const app = await open({ module, agents: [{ name: 'helper' }] });
  const id = await upload(app.client, 'text', 's');
  await idsOf(app.client, 's');
  await download(app.client, id);
  assert.deepEqual(
    asked.map(({ action, resource, id: of, sessionId }) => ({ action, resource, of, sessionId })),
    [
      { action: 'Upload', resource: 'Attachment', of: null, sessionId: 's' },
      { action: 'List', resource: 'Attachment', of: null, sessionId: 's' },
      { action: 'Read', resource: 'Attachment', of: id, sessionId: 's' },
    ],
  );
  const isAttachment = ({ resource }: RunAuthorizationRequest): boolean => resource === 'Attachment';
  policy.decide = (request) => !isAttachment(request);
  assert.equal((await refusal(upload(app.client, 'more'))).answer, '403 run-not-allowed');
  assert.equal((await refusal(idsOf(app.client))).answer, '403 run-not-allowed');
  await assertUnknown(app.client, id);
  policy.decide = (request) => !isAttachment(request) || request.action === 'Read';
  assert.equal(await download(app.client, id), 'text');
  assert.equal((await refusal(remove(app.client, id))).answer, '404 not-found');
  policy.decide = () => {
    throw new Error('undecided');
  };
  assert.equal((await refusal(download(app.client, id))).answer, '404 not-found');
  policy.decide = () => true;
  assert.deepEqual(await idsOf(app.client), [id]);
});
