import assert from 'node:assert/strict';
import { forEachService, type TestApp } from '../../support/app.ts';
import { followToEnd } from '../runs/run-calls.ts';
import { acceptedRun, headersOf, openTriggers, outcomeOf, saveTrigger, sendCall } from './trigger-world.ts';

const service = { Scheduling: { RunWorker: false } };

/** The text that a call gave its agent, once its run has ended. */
const messageOf = async (app: TestApp, runId: string): Promise<unknown> => {
  await followToEnd(app.client, runId);
  const { body } = await app.client.runs.input({ params: { runId } });
  const content: unknown = body.messages.at(-1)?.contents[0];
  return (content as { readonly text?: string } | undefined)?.text;
};

const pullRequest = JSON.stringify({ action: 'opened', pull_request: { title: 'Mend the printer', number: 7 } });
const invoice = (id: unknown): string =>
  JSON.stringify({ id, object: 'event', type: 'invoice.paid', data: { object: { total: 4200 } } });
const mention = (eventId: string, text = 'help'): string =>
  JSON.stringify({ type: 'event_callback', event_id: eventId, event: { type: 'app_mention', text } });
const command = 'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&command=%2Fwebhook-collect&text=help';

forEachService(
  'TRIGGER-14 TRIGGER-20 github: deliveries are told by their id, sent again as often as it likes',
  async (open) => {
    const app = await openTriggers(open, { service });
    app.clock.stand();
    await saveTrigger(app, { scheme: 'github', payloadMode: 'Path', payloadPath: 'pull_request.title' });
    const call = { scheme: 'github', id: '72d3162e-cc78-11e3-81ab-4c9367dc0958', body: pullRequest } as const;
    assert.equal(await outcomeOf(app, call), '202');
    assert.equal(await outcomeOf(app, call), '409 trigger-replayed');
    assert.equal(await outcomeOf(app, { ...call, id: '83e4273f-cc78-11e3-81ab-4c9367dc0958' }), '202');
    // Nobody signs when it was sent, so the id is kept for longer than GitHub sends it again.
    app.clock.setAhead(6 * 86_400_000);
    assert.equal(await outcomeOf(app, call), '409 trigger-replayed');
    for (const headers of [
      { 'x-github-delivery': undefined },
      { 'x-hub-signature-256': undefined },
      { 'x-hub-signature-256': 'sha256=0123' },
      { 'x-hub-signature-256': headersOf(app, call)['x-hub-signature-256']?.toUpperCase() },
      { 'x-hub-signature-256': undefined, 'x-hub-signature': 'sha1=0123' },
    ])
      assert.equal(
        await outcomeOf(app, { ...call, id: 'new', headers }),
        '401 unauthenticated',
        JSON.stringify(headers),
      );
    assert.equal(
      await outcomeOf(app, { body: pullRequest }),
      '401 unauthenticated',
      'by Standard Webhooks it is not signed',
    );
  },
);

forEachService(
  'TRIGGER-18 TRIGGER-28 forms, which GitHub posts by default and Slack for commands and buttons, are read as their JSON',
  async (open) => {
    const app = await openTriggers(open);
    const form = (payload: string): string => new URLSearchParams({ payload }).toString();
    await saveTrigger(app, { scheme: 'github', payloadMode: 'Path', payloadPath: 'pull_request.title' }, 'titles');
    await saveTrigger(app, { scheme: 'github' }, 'bodies');
    await saveTrigger(app, { scheme: 'slack', payloadMode: 'Path', payloadPath: 'text' }, 'commands');
    await saveTrigger(app, { scheme: 'slack', payloadMode: 'Path', payloadPath: 'actions' }, 'buttons');
    await saveTrigger(app, { scheme: 'slack' }, 'whole');
    await saveTrigger(app, { scheme: 'github', payloadMode: 'Path', payloadPath: 'text' }, 'texts');
    const cases = [
      [{ name: 'titles', scheme: 'github', body: form(pullRequest) }, 'Mend the printer'],
      [{ name: 'bodies', scheme: 'github', body: form(pullRequest) }, pullRequest],
      [{ name: 'commands', scheme: 'slack', body: command }, 'help'],
      // Without a path the message is the body as it came.
      [{ name: 'whole', scheme: 'slack', body: command }, command],
      [
        { name: 'buttons', scheme: 'slack', body: form('{"type":"block_actions","actions":"approve & go"}') },
        'approve & go',
      ],
    ] as const;
    for (const [call, message] of cases) {
      assert.equal(await messageOf(app, await acceptedRun(app, call)), message, call.name);
    }
    for (const body of ['payload=', 'payload=%7B', form('text'), 'other=1'])
      assert.equal(
        await outcomeOf(app, { name: 'titles', scheme: 'github', body }),
        '400 trigger-payload-invalid',
        body,
      );
    // The fields of a form are a command of Slack alone.
    assert.equal(
      await outcomeOf(app, { name: 'texts', scheme: 'github', body: 'text=help' }),
      '400 trigger-payload-invalid',
    );
    // Another scheme's sender posts no forms: what looks like one is text.
    await saveTrigger(app, {}, 'standard');
    assert.equal(await messageOf(app, await acceptedRun(app, { name: 'standard', body: 'payload=Hi' })), 'payload=Hi');
  },
);

forEachService('TRIGGER-14 TRIGGER-15 TRIGGER-20 stripe: events are told by the id in their body', async (open) => {
  const app = await openTriggers(open, { service });
  app.clock.stand();
  await saveTrigger(app, { scheme: 'stripe' });
  const now = Math.floor(app.clock.now() / 1000);
  const call = { scheme: 'stripe', body: invoice('evt_1') } as const;
  assert.equal(await outcomeOf(app, call), '202');
  assert.equal(await outcomeOf(app, { ...call, timestamp: now - 7 }), '409 trigger-replayed', 'signed anew');
  assert.equal(await outcomeOf(app, { ...call, body: invoice('evt_2') }), '202');
  for (const offset of [-301, 301])
    assert.equal(await outcomeOf(app, { ...call, timestamp: now + offset }), '401 unauthenticated', `${offset}`);
  for (const body of ['{}', '[]', 'text', invoice(1), invoice(''), invoice('x'.repeat(300)), invoice('a\u0000b')])
    assert.equal(await outcomeOf(app, { scheme: 'stripe', body }), '400 trigger-payload-invalid', body);
  app.clock.setAhead(3 * 86_400_000);
  assert.equal(await outcomeOf(app, call), '409 trigger-replayed', 'Stripe may still send it');
});

forEachService(
  'TRIGGER-14 TRIGGER-15 TRIGGER-20 slack: commands by their signature, events by their id',
  async (open) => {
    const app = await openTriggers(open, { service });
    app.clock.stand();
    await saveTrigger(app, { scheme: 'slack' });
    const now = Math.floor(app.clock.now() / 1000);
    const call = { scheme: 'slack', body: command } as const;
    assert.equal(await outcomeOf(app, call), '202');
    assert.equal(await outcomeOf(app, call), '409 trigger-replayed');
    assert.equal(await outcomeOf(app, { ...call, timestamp: now - 1 }), '202', 'given a second time');
    for (const offset of [-301, 301])
      assert.equal(await outcomeOf(app, { ...call, timestamp: now + offset }), '401 unauthenticated', `${offset}`);
    assert.equal(await outcomeOf(app, { ...call, body: mention('Ev1') }), '202');
    assert.equal(await outcomeOf(app, { ...call, body: mention('Ev1'), timestamp: now - 1 }), '409 trigger-replayed');
    assert.equal(await outcomeOf(app, { ...call, body: mention('Ev2') }), '202');
    const signature = headersOf(app, call)['x-slack-signature'] ?? '';
    for (const wrong of ['', signature.replace('v0=', 'v1='), signature.replace('v0=', ''), signature.toUpperCase()])
      assert.equal(
        await outcomeOf(app, { ...call, headers: { 'x-slack-signature': wrong } }),
        '401 unauthenticated',
        wrong,
      );
  },
);

forEachService(
  'TRIGGER-22 slack: its question whether the address is ours is answered, and starts nothing',
  async (open) => {
    const app = await openTriggers(open, { service });
    await saveTrigger(app, { scheme: 'slack', payloadMode: 'Path', payloadPath: 'event.text' });
    const question = { token: 'Jhj5dZrVaK7ZwHHjRyZWjbDl', challenge: '3eZbrw1aBm2rZgRN', type: 'url_verification' };
    const call = { scheme: 'slack', body: JSON.stringify(question) } as const;
    for (let time = 0; time < 2; time += 1) {
      const reply = await sendCall(app, call);
      assert.deepEqual([reply.status, reply.body], [200, { challenge: question.challenge }]);
    }
    assert.equal(await outcomeOf(app, { ...call, secret: 'wrong' }), '401 unauthenticated');
    assert.deepEqual((await app.client.runs.list({})).body, []);
    const other = JSON.stringify({ ...question, challenge: 7 });
    assert.equal(await outcomeOf(app, { scheme: 'slack', body: other }), '400 trigger-payload-invalid');
    await saveTrigger(app, {}, 'standard');
    assert.equal(await outcomeOf(app, { name: 'standard', body: call.body }), '202', 'elsewhere it is a message');
  },
);

forEachService('TRIGGER-18 slack: what its event says reaches the agent', async (open) => {
  const app = await openTriggers(open);
  await saveTrigger(app, { scheme: 'slack', payloadMode: 'Path', payloadPath: 'event.text' });
  const runId = await acceptedRun(app, { scheme: 'slack', body: mention('Ev1', 'the printer burns') });
  await followToEnd(app.client, runId);
  const { body } = await app.client.runs.input({ params: { runId } });
  assert.match(JSON.stringify(body), /the printer burns/);
  assert.doesNotMatch(JSON.stringify(body), /event_callback/);
});
