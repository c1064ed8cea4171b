import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { forEachDoor, forEachDurableService, forEachService, overHttp, type TestApp } from '../../support/app.ts';
import { getRun, refusal } from '../runs/run-calls.ts';
import {
  acceptedRun,
  headersOf,
  openTriggers,
  outcomeOf,
  postRaw,
  problemIn,
  saveTrigger,
  sendCall,
  signBytes,
  strangersSignature,
  unixSeconds,
} from './trigger-world.ts';

const path = '/api/triggers/default/ticket';
const noWorker = { Scheduling: { RunWorker: false } };

/** An answer as its caller sees it, without what differs from one request to the next. */
const plain = async (response: Response): Promise<unknown> => {
  const { requestId, instance, ...problem } = await problemIn(response);
  assert.match(requestId, /^[0-9a-f-]{36}$/);
  assert.equal(instance, new URL(response.url).pathname);
  const headers = Object.fromEntries([...response.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name)));
  delete headers['content-length'];
  return { status: response.status, headers, problem };
};

overHttp(
  'TRIGGER-12 every failure to prove who calls is one and the same 401, and the log alone says why',
  async (open) => {
    const app = await openTriggers(open, {
      host: { Tenancy: { Enabled: true, AllowedTenants: ['default', 'acme'] } },
      service: {
        TriggerSecrets: { crm: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', acme: { crm: 'acme-secret' } },
        ...noWorker,
      },
    });
    await saveTrigger(app);
    await saveTrigger(app, { enabled: false }, 'disabled');
    await saveTrigger(app, { secretConfigurationKey: 'Service:TriggerSecrets:later' }, 'later');
    const right = headersOf(app, { id: 'evt-1' });
    const at = unixSeconds(app);
    const text = `evt-1.${at}.Hi`;
    const without = (name: string) => Object.fromEntries(Object.entries(right).filter(([header]) => header !== name));
    const cases: readonly (readonly [string, string, Record<string, string>, string])[] = [
      ['unknown tenant', '/api/triggers/acme/ticket', right, 'there is no such trigger'],
      ['tenant not allowed', '/api/triggers/other/ticket', right, 'the tenant is not allowed'],
      ['no tenant’s name', '/api/triggers/a%20b/ticket', right, 'the tenant is not allowed'],
      ['unknown trigger', '/api/triggers/default/nobody', right, 'there is no such trigger'],
      ['no trigger’s name', '/api/triggers/default/%00', right, 'there is no such trigger'],
      ['disabled', '/api/triggers/default/disabled', right, 'the trigger is disabled'],
      ['no value', '/api/triggers/default/later', right, 'its secret has no value, or may not be named'],
      ['no headers', path, {}, 'malformed-id'],
      ...['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(
        (name) =>
          [
            `without ${name}`,
            path,
            without(name),
            { 'webhook-id': 'malformed-id', 'webhook-timestamp': 'malformed-timestamp' }[name] ?? 'wrong-signature',
          ] as const,
      ),
      ['an id with a dot', path, headersOf(app, { id: 'evt.1' }), 'malformed-id'],
      ['a long id', path, headersOf(app, { id: 'x'.repeat(257) }), 'malformed-id'],
      ['a time in words', path, { ...right, 'webhook-timestamp': 'now' }, 'malformed-timestamp'],
      ['too late', path, headersOf(app, { timestamp: at - 301 }), 'late'],
      ['too early', path, headersOf(app, { timestamp: at + 320 }), 'late'],
      ['another secret', path, { ...right, 'webhook-signature': strangersSignature(text) }, 'wrong-signature'],
      ['no base64', path, { ...right, 'webhook-signature': 'v1,%%%' }, 'wrong-signature'],
      [
        'another version',
        path,
        { ...right, 'webhook-signature': right['webhook-signature']?.replace('v1,', 'v2,') ?? '' },
        'wrong-signature',
      ],
      ['another body', path, headersOf(app, { id: 'evt-1', body: 'Ho' }), 'wrong-signature'],
      ['another way to sign', path, headersOf(app, { scheme: 'github' }), 'malformed-id'],
    ];
    const answers: unknown[] = [];
    for (const [what, target, headers, reason] of cases) {
      const told = app.log.length;
      const response = await postRaw(app, target, 'Hi', headers);
      const id = response.headers.get('x-request-id');
      assert.equal(response.status, 401, what);
      answers.push(await plain(response));
      const lines = app.log
        .slice(told)
        .filter(({ message }) => message === 'A call of a trigger was not authenticated');
      assert.deepEqual(
        lines.map(({ fields }) => [fields['requestId'], fields['reason']]),
        [[id, reason]],
        what,
      );
    }
    for (const answer of answers) assert.deepEqual(answer, answers[0]);
    assert.deepEqual((await app.client.runs.list({})).body, []);
    assert.equal(await outcomeOf(app), '202', 'with all of it right it is accepted');
  },
);

overHttp(
  'TRIGGER-12 where refusals are not explained, a call that is too large, unreadable or repeated gets the 401 of one that nobody has signed',
  async (open) => {
    const app = await openTriggers(open, {
      service: { Triggers: { MaxBodyBytes: 100, ExplainRefusals: false }, ...noWorker },
    });
    await saveTrigger(app);
    assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
    const large = 'x'.repeat(101);
    const latin = Buffer.from([0x48, 0xe9]);
    const sent = async (body: string | Uint8Array, headers: Record<string, string>) => {
      const told = app.log.length;
      const response = await postRaw(app, path, body, headers);
      const { status, problem } = (await plain(response)) as { status: number; problem: unknown };
      const [line] = app.log.slice(told).filter(({ message }) => message.startsWith('A call of a trigger'));
      return { answer: { status, problem }, reason: line?.fields['reason'] };
    };
    const signed = (body: string | Uint8Array, id: string) => sent(body, signBytes(app, body, id));
    const stranger = await sent('Hi', { ...headersOf(app, { id: 'evt-2' }), 'webhook-signature': 'v1,%%%' });
    assert.equal(stranger.answer.status, 401);
    const refused = [
      ['too large', await signed(large, 'evt-2'), 'body-too-large'],
      ['too large, from a stranger', await sent(large, {}), 'body-too-large'],
      ['no UTF-8', await signed(latin, 'evt-3'), 'trigger-payload-invalid'],
      ['nothing', await signed('', 'evt-4'), 'trigger-payload-invalid'],
      ['once more', await signed('Hi', 'evt-1'), 'trigger-replayed'],
    ] as const;
    for (const [what, { answer, reason }, code] of refused) {
      assert.deepEqual(answer, stranger.answer, what);
      assert.equal(reason, code, what);
    }
    await saveTrigger(app, { enabled: false });
    assert.deepEqual((await signed('Hi', 'evt-5')).answer, stranger.answer);
    await saveTrigger(app);
    assert.equal(await outcomeOf(app, { id: 'evt-2' }), '202', 'what was refused has reserved nothing');
  },
);

/** Sends header fields as they are; a client would join those of one name. */
const sendFields = (app: TestApp, fields: readonly string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(app.url);
    const socket = connect(Number(port), hostname);
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
    socket.on('error', reject).on('end', () => resolve(Buffer.concat(chunks).toString()));
    const head = [`POST ${path} HTTP/1.1`, 'host: 127.0.0.1', 'content-length: 2', 'connection: close', ...fields];
    socket.write([...head, '', 'Hi'].join('\r\n'));
  });

overHttp('TRIGGER-12 a header that is sent twice is none', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  const fieldsOf = (twice: string | null): string[] =>
    Object.entries(headersOf(app)).flatMap(([name, value]) =>
      name === twice ? [`${name}: ${value}`, `${name.toUpperCase()}: ${value}`] : [`${name}: ${value}`],
    );
  for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
    assert.match(await sendFields(app, fieldsOf(name)), /^HTTP\/1\.1 401 /, name);
  assert.match(await sendFields(app, fieldsOf(null)), /^HTTP\/1\.1 202 /);
});

forEachService('TRIGGER-12 without tenancy there is the default tenant alone', async (open) => {
  const app = await openTriggers(open, {
    service: {
      TriggerSecrets: { crm: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', acme: { crm: 'acme-secret' } },
      ...noWorker,
    },
  });
  const acme = app.inTenant('acme');
  await acme.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  await saveTrigger({ client: acme }, { secretConfigurationKey: 'Service:TriggerSecrets:acme:crm' });
  await saveTrigger(app);
  const call = { tenantId: 'acme', secret: 'acme-secret' };
  assert.equal(await outcomeOf(app, call), '401 unauthenticated');
  assert.equal(await outcomeOf(app), '202');
});

forEachService('TRIGGER-5 TRIGGER-12 a tenant’s trigger runs in its tenant, by its own secret', async (open) => {
  const app = await openTriggers(open, {
    host: { Tenancy: { Enabled: true } },
    service: { TriggerSecrets: { crm: 'shared', acme: { crm: 'acme-secret' } }, ...noWorker },
  });
  const acme = app.inTenant('acme');
  await acme.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  await saveTrigger({ client: acme }, { secretConfigurationKey: 'Service:TriggerSecrets:acme:crm' });
  assert.equal(await outcomeOf(app, { tenantId: 'acme', secret: 'shared' }), '401 unauthenticated');
  const runId = await acceptedRun(app, { tenantId: 'acme', secret: 'acme-secret' });
  assert.equal((await getRun(acme, runId)).status, 'Queued');
  assert.equal((await refusal(getRun(app.client, runId))).status, 404);
});

forEachDurableService('TRIGGER-5 what a key may name is asked again with each call', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  assert.equal(await outcomeOf(app), '202');
  await app.close();
  const Triggers = { AllowedConfigurationPrefix: 'Service:TriggerSecrets:outer:' };
  const moved = await openTriggers(open, { folder: app.folder, agents: [], service: { ...noWorker, Triggers } });
  assert.equal((await moved.client.triggers.get({ params: { name: 'ticket' } })).body.resolved, false);
  assert.equal(await outcomeOf(moved), '401 unauthenticated');
});

overHttp(
  'TRIGGER-14 the secret is read from its file with each call, and several count while it rotates',
  async (open, t) => {
    const folder = mkdtempSync(join(tmpdir(), 'acp-secret-'));
    t.after(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'crm');
    writeFileSync(file, 'first');
    const app = await openTriggers(open, {
      service: { TriggerSecrets: { crm: ['newest', `\${file:${file}}`] }, ...noWorker },
    });
    await saveTrigger(app);
    for (const secret of ['newest', 'first']) assert.equal(await outcomeOf(app, { secret }), '202', secret);
    writeFileSync(file, 'second');
    assert.equal(await outcomeOf(app, { secret: 'first' }), '401 unauthenticated');
    assert.equal(await outcomeOf(app, { secret: 'second' }), '202');
  },
);

overHttp('TRIGGER-9 no credential is read; a caller of another machine is refused like everywhere', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  for (const more of [
    { authorization: 'Bearer wrong' },
    { authorization: 'Bearer acp_0123456789_wrong', 'x-api-key': 'also-wrong' },
    { origin: 'https://elsewhere.example', host: 'elsewhere.example' },
  ]) {
    const response = await postRaw(app, path, 'Hi', { ...headersOf(app), ...more });
    assert.equal(response.status, 202, JSON.stringify(more));
    await response.body?.cancel();
  }
  const remote = await postRaw(app, path, 'x'.repeat(300_000), { ...headersOf(app), 'x-forwarded-for': '10.1.2.3' });
  assert.deepEqual([remote.status, (await problemIn(remote)).code], [403, 'remote-access-denied']);
});

overHttp('TRIGGER-9 with remote access a caller of another machine calls without a credential', async (open) => {
  const app = await openTriggers(open, {
    host: { AllowRemoteAccess: true, AuthToken: 'a-shared-token-of-this-test' },
    token: 'a-shared-token-of-this-test',
    service: noWorker,
  });
  await saveTrigger(app);
  const response = await postRaw(app, path, 'Hi', { ...headersOf(app), 'x-forwarded-for': '10.1.2.3' });
  assert.equal(response.status, 202);
  await response.body?.cancel();
});

forEachService('TRIGGER-10 a process that drains answers 503 before it looks at anything', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  await app.app.drain();
  for (const call of [{}, { secret: 'wrong' }, { name: 'nobody' }, { body: 'x'.repeat(300_000) }]) {
    const problem = await refusal(sendCall(app, call));
    assert.deepEqual([problem.status, problem.code], [503, 'draining']);
    assert.ok((problem.retryAfterMs ?? 0) > 0);
  }
});

overHttp('TRIGGER-11 a body above the limit is 413, announced or not, whoever sends it', async (open) => {
  const app = await openTriggers(open, { service: { Triggers: { MaxBodyBytes: 1000 }, ...noWorker } });
  await saveTrigger(app);
  const large = 'x'.repeat(1001);
  for (const [what, response] of [
    ['announced', await postRaw(app, path, large, headersOf(app, { body: large }))],
    ['unsigned', await postRaw(app, path, large, {})],
    ['unknown trigger', await postRaw(app, '/api/triggers/nobody/nothing', large, {})],
    [
      'in chunks',
      await fetch(app.url + path, {
        method: 'POST',
        headers: headersOf(app, { body: large }),
        body: new ReadableStream({
          start(controller) {
            for (let part = 0; part < 7; part += 1)
              controller.enqueue(Buffer.from(large.slice(part * 143, (part + 1) * 143)));
            controller.close();
          },
        }),
        duplex: 'half',
      } as RequestInit),
    ],
  ] as const)
    assert.deepEqual([response.status, (await problemIn(response)).code], [413, 'body-too-large'], what);
  const most = 'x'.repeat(1000);
  assert.equal(await outcomeOf(app, { body: most }), '202');
});

forEachService('TRIGGER-16 each trigger has its own window, which only authentic calls use', async (open) => {
  const app = await openTriggers(open, {
    service: { Triggers: { PermitLimit: 2, Window: '2m' }, ...noWorker },
  });
  app.clock.stand();
  await saveTrigger(app);
  await saveTrigger(app, {}, 'other');
  for (let count = 0; count < 5; count += 1)
    assert.equal(await outcomeOf(app, { secret: 'wrong' }), '401 unauthenticated');
  assert.equal(await outcomeOf(app), '202');
  assert.equal(await outcomeOf(app, { body: ' ' }), '400 trigger-payload-invalid');
  const problem = await refusal(sendCall(app));
  assert.deepEqual([problem.status, problem.code], [429, 'trigger-rate-limited']);
  assert.equal(problem.retryAfterMs, 120_000);
  assert.equal(await outcomeOf(app, { secret: 'wrong' }), '401 unauthenticated');
  assert.equal(await outcomeOf(app, { name: 'other' }), '202');
  await app.clock.advance(119_999);
  assert.equal(await outcomeOf(app), '429 trigger-rate-limited');
  await app.clock.advance(1);
  assert.deepEqual([await outcomeOf(app), await outcomeOf(app)], ['202', '202']);
  assert.equal(await outcomeOf(app), '429 trigger-rate-limited');
  app.clock.setBack(3_600_000);
  assert.equal(await outcomeOf(app), '202', 'no window lasts as long as the clock was set back by');
});

for (const [what, service, code] of [
  ['asynchronous runs are off', { AsyncRun: { Enabled: false } }, '501 async-runs-disabled'],
  ['scheduling is off', { Scheduling: { Enabled: false } }, '501 async-runs-disabled'],
  ['recording is off', { RunRecording: { Enabled: false } }, '501 run-recording-disabled'],
] as const)
  forEachService(`TRIGGER-16 TRIGGER-17 while ${what} an authentic call is 501`, async (open) => {
    const app = await openTriggers(open, { service: { ...service, Triggers: { PermitLimit: 1 } } as never });
    app.clock.stand();
    await saveTrigger(app);
    assert.equal(await outcomeOf(app, { secret: 'wrong' }), '401 unauthenticated');
    assert.equal(await outcomeOf(app, { body: ' ', name: 'ticket' }), code, 'before the body is looked at');
    assert.equal(await outcomeOf(app), '429 trigger-rate-limited', 'it has used the window');
  });

overHttp('TRIGGER-18 the text of the body is the message; what is empty or not UTF-8 is 400', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  for (const [what, body] of [
    ['empty', ''],
    ['white space', ' \n\t'],
    ['Latin-1', Buffer.from('Grüße', 'latin1')],
    ['a lone surrogate', Buffer.from([0xed, 0xa0, 0x80])],
    ['compressed', gzipSync('Hi')],
  ] as const) {
    const response = await postRaw(app, path, body, signBytes(app, body));
    const problem = await problemIn(response);
    assert.deepEqual([response.status, problem.code], [400, 'trigger-payload-invalid'], what);
  }
  const text = ' {"not": "parsed"  }\n';
  const runId = await acceptedRun(app, { body: text });
  assert.equal(await messageOf(app, runId), text);
});

/** What a queued run will say to its agent. */
const messageOf = async (app: TestApp, runId: string): Promise<unknown> => {
  const [row] = (await app.store.stored('jobs')).filter(({ id }) => id === runId);
  return (JSON.parse(String(row?.['payload'])) as { request: { message: unknown } }).request.message;
};

forEachDurableService('TRIGGER-18 a path leads to text as it is, or to anything else as compact JSON', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app, { payloadMode: 'Path', payloadPath: 'ticket.text' });
  const body = (value: string): string => `{"ticket": {"text": ${value}, "more": 1}}`;
  for (const [value, message] of [
    ['"The printer is on fire"', 'The printer is on fire'],
    ['" spaces stay "', ' spaces stay '],
    ['"\\u00fc \\ud83d\\ude00"', 'ü \u{1F600}'],
    ['{ "a": [1, 2,  {"b": null}] }', '{"a":[1,2,{"b":null}]}'],
    ['[ ]', '[]'],
    ['false', 'false'],
    ['0', '0'],
    ['12345678901234567890', '12345678901234567890'],
    ['{"id": 12345678901234567890, "price": 1.10}', '{"id":12345678901234567890,"price":1.10}'],
  ] as const)
    assert.equal(await messageOf(app, await acceptedRun(app, { body: body(value) })), message, value);
  for (const wrong of [
    'null',
    '"ticket"',
    '[]',
    '{"ticket": null}',
    '{"ticket": "text"}',
    '{"ticket": ["text"]}',
    '{"ticket": 12345678901234567890}',
    body('null'),
    body('""'),
    body('"  "'),
    '{"ticket": {"text": "a"}',
    'ticket',
    '\uFEFF{"ticket": {"text": "a"}}',
    '{"ticket.text": "a"}',
    `${'{"ticket":'.repeat(3000)}1${'}'.repeat(3000)}`,
    body(`${'['.repeat(3000)}${']'.repeat(3000)}`),
  ])
    assert.equal(await outcomeOf(app, { body: wrong }), '400 trigger-payload-invalid', wrong.slice(0, 60));
  await saveTrigger(app, { payloadMode: 'Path', payloadPath: '__proto__.text' }, 'proto');
  assert.equal(await outcomeOf(app, { name: 'proto', body: '{}' }), '400 trigger-payload-invalid');
  await saveTrigger(app, { payloadMode: 'Path', payloadPath: 'ticket.length' }, 'length');
  assert.equal(await outcomeOf(app, { name: 'length', body: '{"ticket": "text"}' }), '400 trigger-payload-invalid');
});

forEachService('TRIGGER-19 a target that was removed is 409, and the id is free for the next try', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  await app.client.agents.remove({ params: { name: 'helper' } });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-target-missing');
  assert.equal(await outcomeOf(app, { id: 'evt-2', body: ' ' }), '400 trigger-payload-invalid', 'the body comes first');
  await app.createAgent({ name: 'helper' });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  await app.client.agents.remove({ params: { name: 'helper' } });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-target-missing', 'it is asked first');
});

forEachService('TRIGGER-20 an id is accepted once within two tolerances, and by each trigger', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  app.clock.stand();
  await saveTrigger(app);
  await saveTrigger(app, {}, 'other');
  const runId = await acceptedRun(app, { id: 'evt-1' });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
  assert.equal(await outcomeOf(app, { id: 'evt-1', body: 'Something else' }), '409 trigger-replayed');
  assert.equal(await outcomeOf(app, { id: 'EVT-1' }), '202', 'an id is told by its case');
  assert.equal(await outcomeOf(app, { id: 'evt-1', name: 'other' }), '202');
  await app.clock.advance(2 * 300_000);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
  await app.clock.advance(1000);
  const again = await acceptedRun(app, { id: 'evt-1' });
  assert.notEqual(again, runId);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed', 'it is reserved anew');
});

forEachService('TRIGGER-15 TRIGGER-20 WEBHOOK-36 signatures and ids go by the tolerance that is set', async (open) => {
  for (const [tolerance, seconds] of [
    ['1m', 60],
    ['20m', 1200],
  ] as const) {
    const app = await openTriggers(open, { service: { ...noWorker, Webhooks: { SignatureTolerance: tolerance } } });
    app.clock.stand();
    await saveTrigger(app);
    const now = Math.floor(app.clock.now() / 1000);
    for (const late of [-seconds, seconds]) {
      assert.equal(await outcomeOf(app, { timestamp: now + late }), '202', `${tolerance}: ${late}`);
      assert.match(
        await outcomeOf(app, { timestamp: now + late + Math.sign(late) * 2 }),
        /^401 /,
        `${tolerance}: ${late}`,
      );
    }
    assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
    await app.clock.advance(2 * seconds * 1000);
    assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
    await app.clock.advance(1000);
    assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  }
});

forEachDurableService('TRIGGER-20 a reservation outlives its process; what has lapsed goes', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  await app.close();
  const next = await openTriggers(open, { service: noWorker, folder: app.folder, agents: [] });
  assert.equal(await outcomeOf(next, { id: 'evt-1' }), '409 trigger-replayed');
  assert.equal(await next.store.count('calls of triggers'), 1);
  next.clock.setAhead(7_200_000);
  await next.clock.advance(600_000);
  assert.equal(await outcomeOf(next, { id: 'evt-2' }), '202');
  await next.clock.advance(600_000);
  assert.deepEqual(
    (await next.store.stored('calls of triggers')).map((row) => row['call_id']),
    ['evt-2'],
  );
});

forEachDoor('TRIGGER-20 a clock that was an hour ahead, and is set right, lets no call in twice', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  app.clock.stand();
  await saveTrigger(app);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  app.clock.setAhead(3_600_000);
  // What has lapsed by the wrong time is looked for.
  await app.clock.advance(600_000);
  app.clock.setBack(4_200_000);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed');
});

forEachDurableService('TRIGGER-20 what cannot be queued reserves nothing', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  for (const what of ['jobs', 'runs', 'calls of triggers', 'triggers'] as const) {
    const giveBack = await app.store.refuse(what);
    assert.match(await outcomeOf(app, { id: `evt-${what}` }), /^50[03] /, what);
    await giveBack();
    assert.deepEqual(
      [await app.store.count('runs'), await app.store.count('jobs'), await app.store.count('calls of triggers')],
      [0, 0, 0],
      what,
    );
  }
  for (const what of ['jobs', 'runs', 'calls of triggers', 'triggers'] as const)
    assert.equal(await outcomeOf(app, { id: `evt-${what}` }), '202', what);
});

overHttp('RATE-4 calls of triggers and meta are free of the limit of requests, and use nothing of it', async (open) => {
  const app = await openTriggers(open, {
    service: { ...noWorker, RateLimit: { Enabled: true, PermitLimit: 3, Window: '1h', Partition: 'RemoteAddress' } },
    agents: [],
  });
  await app.client.agents.create({ body: { name: 'helper', model: { provider: 'demo', model: 'demo-1' } } });
  await saveTrigger(app);
  const meta = async () => (await fetch(`${app.url}/api/meta`)).status;
  const call = async () => [await outcomeOf(app), await meta()];
  assert.deepEqual(
    [await call(), await call()],
    [
      ['202', 200],
      ['202', 200],
    ],
  );
  const list = async () => (await fetch(`${app.url}/api/agents`)).status;
  assert.deepEqual([await list(), await list()], [200, 429], 'one permit was left');
  assert.deepEqual(await call(), ['202', 200]);
});

forEachService('TRIGGER-21 a denial of the host is 403, and comes before quotas', async (open) => {
  const asked: unknown[] = [];
  const app = await openTriggers(open, {
    service: noWorker,
    module: {
      runAuthorization: {
        async authorize(request) {
          if (request.action === 'Start') asked.push([request.agentName, request.userId, request.principal]);
          return { allowed: request.action !== 'Start' || asked.length > 1 };
        },
      },
    },
  });
  await saveTrigger(app);
  await app.client.quotas.save({ body: { period: 'Daily', maxRuns: 1 } });
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '403 run-not-allowed');
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '202');
  const problem = await refusal(sendCall(app, { id: 'evt-2' }));
  assert.deepEqual([problem.status, problem.code, problem.quotaLimit], [429, 'quota-exceeded', 1]);
  assert.equal(await outcomeOf(app, { id: 'evt-1' }), '409 trigger-replayed', 'before the quota');
  const [, , principal] = asked[0] as [string, null, Record<string, unknown>];
  assert.deepEqual(
    [asked.length, principal['kind'], principal['actor'], principal['userId'], principal['permissions']],
    [3, 'Host', 'trigger:ticket', null, []],
  );
});

forEachService('TRIGGER-22 an accepted call is 202 with the address of its queued run', async (open) => {
  const app = await openTriggers(open, { service: noWorker });
  await saveTrigger(app);
  const reply = await sendCall(app, { id: 'evt-1' });
  assert.equal(reply.status, 202);
  const { runId, jobId, location, eventsLocation } = reply.body;
  assert.deepEqual([jobId, location, eventsLocation], [runId, `/api/runs/${runId}`, `/api/runs/${runId}/events`]);
  assert.deepEqual([reply.headers['location'], reply.headers['x-run-id']], [location, runId]);
  assert.equal((await getRun(app.client, runId)).status, 'Queued');
  const { job } = (await app.client.jobs.get({ params: { id: jobId } })).body;
  assert.deepEqual(
    [job.handlerKey, job.targetName, job.status, job.payload],
    ['acp.agent-run', 'helper', 'Pending', null],
  );
});
