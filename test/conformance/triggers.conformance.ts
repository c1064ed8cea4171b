import assert from 'node:assert/strict';
import { createHmac, randomUUID } from 'node:crypto';
import { eventually } from '../support/eventually.ts';
import { type Answer, type Api, assertProblem, type Body, unique } from './api.ts';
import { rule } from './rule.ts';
import { ended, getRun } from './run-calls.ts';

// Of the server that the suite is made for: `test/conformance/target/service.yaml`.
const secretKey = 'Service:TriggerSecrets:suite';
const newerSecret = 'a-newer-secret-of-the-suite';
const olderKey = Buffer.from('secret of the suite');

const save = async (api: Api, targetName: string, more: Body = {}, name = unique('trigger')): Promise<Body> => {
  const answer = await api.put(`/api/triggers/${name}`, { targetName, secretConfigurationKey: secretKey, ...more });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};

interface Sent {
  readonly id?: string;
  readonly key?: string | Buffer;
  readonly at?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

const seconds = (): number => Math.floor(Date.now() / 1000);
const signatureOf = (key: string | Buffer, id: string, at: number, body: string | Uint8Array): string =>
  `v1,${createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest('base64')}`;

/** A call as any library of Standard Webhooks makes it. */
const send = (
  api: Api,
  { acceptPath }: Pick<Body, 'acceptPath'>,
  body: string | Uint8Array,
  { id = randomUUID(), key = newerSecret, at = seconds(), headers = {} }: Sent = {},
): Promise<Answer> =>
  api.as(null).unwatched.post(acceptPath, undefined, {
    raw: body,
    headers: {
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': signatureOf(key, id, at, body),
      ...headers,
    },
  });

const accepted = async (api: Api, trigger: Body, body = 'Hi', more: Sent = {}): Promise<Body> => {
  const answer = await send(api, trigger, body, more);
  assert.equal(answer.status, 202, answer.text);
  return answer.body;
};

rule(
  'TRIGGER-1 TRIGGER-2 TRIGGER-3',
  'triggers are listed by name, replaced whole, and show no secret',
  async (api) => {
    const agent = await api.agent();
    const name = unique('trigger');
    const first = await save(api, agent, { payloadMode: 'Path', payloadPath: 'a.b', enabled: false }, name);
    const second = await save(api, agent, {}, name);
    assert.deepEqual(
      [second.id, second.createdAt, second.payloadMode, second.payloadPath, second.enabled, second.resolved],
      [first.id, first.createdAt, 'WholeBody', null, true, true],
    );
    assert.deepEqual((await api.get(`/api/triggers/${name}`)).body, second);
    const listed = (await api.get('/api/triggers')).body.map((one: Body) => one.name);
    assert.ok(listed.includes(name));
    assert.deepEqual(listed, listed.toSorted());
    assert.ok(!(await api.get('/api/triggers')).text.includes(newerSecret));
    const other = api.inTenant(unique('tenant'));
    assert.deepEqual((await other.get('/api/triggers')).body, []);
    for (const path of [`/api/triggers/${name}`, '/api/triggers/nobody'])
      assertProblem(await other.get(path), 404, 'not-found');
  },
);

rule('TRIGGER-4 TRIGGER-5 TRIGGER-6', 'a definition is refused by the member that is wrong', async (api) => {
  const targetName = await api.agent();
  const good = { targetName, secretConfigurationKey: secretKey };
  const refused = async (body: Body, path: string, code = 'validation-failed'): Promise<void> => {
    const answer = await api.put(`/api/triggers/${unique('trigger')}`, body);
    assertProblem(answer, 400, code);
    assert.deepEqual(
      answer.body.errors.map((one: Body) => one.path),
      [path],
    );
  };
  await refused({ ...good, targetName: 'nobody-at-all' }, 'targetName');
  await refused({ ...good, targetKind: 'Workflow', targetName: 'nothing' }, 'targetName');
  for (const key of ['Service:WebhookSecrets:suite', 'Host:AuthToken', 'Service:TriggerSecrets:acme:suite'])
    await refused({ ...good, secretConfigurationKey: key }, 'secretConfigurationKey', 'configuration-key-not-allowed');
  for (const payloadPath of [null, 'a..b', 'a[0]', Array.from({ length: 17 }, () => 'a').join('.')])
    await refused({ ...good, payloadMode: 'Path', payloadPath }, 'payloadPath');
  await refused({ ...good, payloadPath: 'a' }, 'payloadPath');
});

rule('TRIGGER-7', 'saves and removals are in the audit trail', async (api) => {
  const trigger = await save(api, await api.agent());
  assert.equal((await api.del(`/api/triggers/${trigger.name}`)).status, 204);
  const entries = (await api.get(`/api/audit?entity=trigger:${trigger.name}`)).body;
  assert.deepEqual(
    entries.map((one: Body) => one.action),
    ['trigger.delete', 'trigger.save'],
  );
});

rule('TRIGGER-8 TRIGGER-12', 'what does not prove who calls is one and the same 401', async (api) => {
  const agent = await api.agent();
  const trigger = await save(api, agent);
  const disabled = await save(api, agent, { enabled: false });
  const later = await save(api, agent, { secretConfigurationKey: 'Service:TriggerSecrets:later' });
  const removed = await save(api, agent);
  assert.equal((await api.del(`/api/triggers/${removed.name}`)).status, 204);
  assertProblem(await api.del(`/api/triggers/${removed.name}`), 404, 'not-found');
  const plain = ({ body, headers }: Answer) => {
    const { requestId: _id, instance: _path, ...rest } = body;
    return { ...rest, type: headers.get('content-type'), authenticate: headers.get('www-authenticate') };
  };
  const answers = [
    await send(api, disabled, 'Hi'),
    await send(api, later, 'Hi'),
    await send(api, removed, 'Hi'),
    await send(api, { acceptPath: '/api/triggers/default/nobody' }, 'Hi'),
    await send(api, { acceptPath: `/api/triggers/${unique('tenant')}/${trigger.name}` }, 'Hi'),
    await send(api, trigger, 'Hi', { key: 'another' }),
    await send(api, trigger, 'Hi', { id: 'a.b' }),
    await send(api, trigger, 'Hi', { at: seconds() - 400 }),
    await send(api, trigger, 'Hi', { at: seconds() + 400 }),
    await send(api, trigger, 'Hi', { headers: { 'webhook-signature': 'v1,' } }),
    await send(api, trigger, 'Hi', { headers: { 'webhook-timestamp': 'now' } }),
    await api.as(null).unwatched.post(trigger.acceptPath, undefined, { raw: 'Hi' }),
  ];
  for (const answer of answers) {
    assertProblem(answer, 401, 'unauthenticated');
    assert.deepEqual(plain(answer), plain(answers[0] as Answer));
  }
});

rule('TRIGGER-9', 'no credential is asked for, and one that is sent is ignored', async (api) => {
  const trigger = await save(api, await api.agent());
  await accepted(api, trigger, 'Hi', { headers: { authorization: 'Bearer wrong', 'x-api-key': 'also wrong' } });
});

rule('TRIGGER-11', 'a body above the limit is 413', async (api) => {
  const trigger = await save(api, await api.agent());
  assertProblem(await send(api, trigger, 'x'.repeat(262_145)), 413, 'body-too-large');
  await accepted(api, trigger, 'x'.repeat(262_144));
});

rule('TRIGGER-14 TRIGGER-15', 'each secret of the list counts, and each signature of the header', async (api) => {
  const trigger = await save(api, await api.agent());
  await accepted(api, trigger);
  await accepted(api, trigger, 'Grüße \u{1F600}', { key: olderKey });
  const [id, at] = [randomUUID(), seconds()];
  const right = signatureOf(olderKey, id, at, 'Hi');
  await accepted(api, trigger, 'Hi', { id, at, headers: { 'webhook-signature': `v2,AAAA v1,AAAA ${right} v1a,AAAA` } });
  await accepted(api, trigger, 'Hi', { id: 'x'.repeat(256), at: seconds() - 200 });
});

rule(
  'TRIGGER-16',
  'more calls than the window has are 429',
  async (api) => {
    const trigger = await save(api, await api.agent());
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) statuses.push((await send(api, trigger, 'Hi')).status);
    assert.deepEqual(statuses, [202, 202, 202, 429]);
    const answer = await send(api, trigger, 'Hi');
    assertProblem(answer, 429, 'trigger-rate-limited');
    assert.ok(Number(answer.headers.get('retry-after')) > 0);
    assertProblem(await send(api, trigger, 'Hi', { key: 'another' }), 401, 'unauthenticated');
  },
  {
    settings: { 'Service:Triggers:PermitLimit': '3', 'Service:Triggers:Window': '1h' },
    perProcess: 'in one process',
  },
);

rule(
  'TRIGGER-17',
  'while queued runs are off an authentic call is 501',
  async (api) => {
    const trigger = await save(api, await api.agent());
    assertProblem(await send(api, trigger, 'Hi'), 501, 'async-runs-disabled');
    assertProblem(await send(api, trigger, 'Hi', { key: 'another' }), 401, 'unauthenticated');
  },
  { settings: { 'Service:AsyncRun:Enabled': 'false' } },
);

rule('TRIGGER-18', 'the body, or what the path leads to, is the message', async (api) => {
  const agent = await api.agent();
  const whole = await save(api, agent);
  const path = await save(api, agent, { payloadMode: 'Path', payloadPath: 'ticket.text' });
  const said = async (trigger: Body, body: string): Promise<string> => {
    const { runId } = await accepted(api, trigger, body);
    await ended(api, runId);
    return (await api.get(`/api/runs/${runId}/input`)).text;
  };
  assert.match(await said(whole, 'The whole body'), /The whole body/);
  assert.match(await said(path, '{"ticket":{"text":"The printer is on fire"}}'), /"The printer is on fire"/);
  assert.match(await said(path, '{"ticket":{"text":{"a": [1, 2]}}}'), /\{\\"a\\":\[1,2\]\}/);
  for (const body of ['', '{"ticket":', '{"ticket":{}}', '{"ticket":{"text":null}}', '[]'])
    assertProblem(await send(api, path, body), 400, 'trigger-payload-invalid');
  assertProblem(await send(api, whole, Buffer.from([0xff, 0xfe])), 400, 'trigger-payload-invalid');
  assertProblem(await send(api, whole, ''), 400, 'trigger-payload-invalid');
});

rule('TRIGGER-19', 'a target that was removed is 409, and reserves nothing', async (api) => {
  const agent = await api.agent();
  const trigger = await save(api, agent);
  const id = randomUUID();
  assert.equal((await api.del(`/api/agents/${agent}`)).status, 204);
  for (let count = 0; count < 2; count += 1)
    assertProblem(await send(api, trigger, 'Hi', { id }), 409, 'trigger-target-missing');
});

rule('TRIGGER-20', 'of equal calls, at once and later, one starts a run', async (api) => {
  const agent = await api.agent();
  const trigger = await save(api, agent);
  const id = randomUUID();
  const answers = await Promise.all(Array.from({ length: 20 }, () => send(api, trigger, 'Hi', { id })));
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [202, ...Array.from({ length: 19 }, () => 409)]);
  assertProblem(await send(api, trigger, 'Hi', { id }), 409, 'trigger-replayed');
  assert.equal((await api.get(`/api/runs?agentName=${agent}`)).body.length, 1);
  const other = await save(api, agent);
  await accepted(api, other, 'Hi', { id });
});

rule('TRIGGER-21', 'an exceeded quota is 429, and releases the id', async (all) => {
  const api = all;
  const agent = await api.agent();
  const trigger = await save(api, agent);
  const made = await api.put('/api/quotas', { agentName: agent, period: 'Monthly', maxRuns: 0 });
  assert.equal(made.status, 200, made.text);
  const id = randomUUID();
  await eventually('the quota counts', async () => {
    const answer = await send(api, trigger, 'Hi');
    return answer.status === 429 && answer.body.code === 'quota-exceeded';
  });
  const answer = await send(api, trigger, 'Hi', { id });
  assertProblem(answer, 429, 'quota-exceeded');
  assert.ok(answer.headers.has('retry-after'));
  assertProblem(await send(api, trigger, 'Hi', { id }), 429, 'quota-exceeded');
});

rule(
  'TRIGGER-22 TRIGGER-23 TRIGGER-25',
  'an accepted call is a queued run with its job, labels and no user',
  async (api) => {
    const agent = await api.agent();
    const trigger = await save(api, agent);
    const answer = await send(api, trigger, '{"userId":"eve","labels":{"source":"me"}}');
    assert.equal(answer.status, 202, answer.text);
    const { runId, jobId, location, eventsLocation } = answer.body;
    assert.deepEqual([jobId, answer.headers.get('location')], [runId, location]);
    assert.equal((await api.get(location)).body.id, runId);
    assert.equal(eventsLocation, `${location}/events`);
    const run = await ended(api, runId);
    assert.deepEqual(
      [run.status, run.agentName, run.userId, run.labels],
      ['Completed', agent, null, { source: 'trigger', trigger: trigger.name }],
    );
    const { job } = (await api.get(`/api/jobs/${jobId}`)).body;
    assert.deepEqual([job.handlerKey, job.targetName], ['acp.agent-run', agent]);
  },
);

rule('TRIGGER-24 TRIGGER-26', 'each call has a session of its own, and the last one is dated', async (api) => {
  const agent = await api.agent();
  const trigger = await save(api, agent);
  const runs = [await accepted(api, trigger), await accepted(api, trigger)];
  const sessions = await Promise.all(runs.map(async ({ runId }) => (await getRun(api, runId)).sessionId));
  assert.equal(new Set(sessions).size, 2);
  assert.ok(sessions.every((id) => typeof id === 'string'));
  const { lastAcceptedAt } = (await api.get(`/api/triggers/${trigger.name}`)).body;
  assert.ok(Date.now() - Date.parse(lastAcceptedAt) < 60_000);
  const entries = (await api.get(`/api/audit?entity=trigger:${trigger.name}`)).body;
  assert.equal(entries.length, 1, 'calls are not audited');
});
