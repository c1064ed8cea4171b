import assert from 'node:assert/strict';
import { overHttp } from '../../support/app.ts';
import { assertNowhere, mail, pattern, secret } from '../guards/guard-world.ts';
import { says } from '../runs/chat-requests.ts';
import { helperSetup, local, token } from './openai-client.ts';
import { chat, codeOf, type Json, respond, send } from './openai-wire.ts';

/* What a request decides of its agent is read by the model, too: tools and a format say what their caller wrote. */

const format = (text: string): Json => ({
  type: 'json_schema',
  name: 'answer',
  schema: { type: 'object', properties: { to: { type: 'string', description: `Not ${text}` } } },
});
const inChat = (text: string): Json => {
  const { type, ...below } = format(text);
  return { response_format: { type, json_schema: below } };
};
const inResponse = (text: string): Json => ({ text: { format: format(text) } });
const described = (text: string): Json => ({
  tools: [{ type: 'function', function: { name: 'look', description: `Of ${text}`, parameters: { type: 'object' } } }],
});
const declared = (text: string): Json => ({
  tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object', title: text } } }],
});
const valued = (text: string): Json => ({ metadata: { 'param.topic': `About ${text}`, team: 'red' } });

const guarded = helperSetup({
  host: { AuthToken: token, OpenAiCompat: { ExposeModels: true } },
  service: {
    ContentGuard: { Pattern: pattern },
    Providers: { Compatible: { local: { DefaultModel: 'small' } } },
  },
  agents: [
    {
      name: 'helper',
      model: local,
      instructions: 'Speak of {{topic}}.',
      parameters: [{ name: 'topic', kind: 'Text', defaultValue: 'tea' }],
    },
  ],
});

const small = { model: 'local/small' };
const requests: readonly (readonly [string, typeof chat, (text: string) => Json])[] = [
  ['a format of a chat', chat, inChat],
  ['a format of a response', respond, inResponse],
  ['a format of a model', chat, (text) => ({ ...small, ...inChat(text) })],
  ['a format of a response of a model', respond, (text) => ({ ...small, ...inResponse(text) })],
  ['a description of a tool', chat, (text) => ({ ...small, ...described(text) })],
  ['a schema of a tool', chat, (text) => ({ ...small, ...declared(text) })],
  ['a value of a chat', chat, valued],
  ['a value of a response', respond, valued],
];

overHttp(
  'OAI-13 GUARD-5 GUARD-18 what a request decides of its agent is inspected as what its caller says',
  async (open, t) => {
    const app = await open(guarded);
    const { simulator } = app;
    for (const [what, door, more] of requests)
      for (const stream of [false, true])
        await t.test(`GUARD-14 GUARD-18 ${what}, ${stream ? 'streamed' : 'whole'}`, async () => {
          const sent = simulator.requests.length;
          const blocked = await door(app, { ...more(secret), stream });
          if (stream) assert.match(blocked.text, /content_blocked/);
          else assert.deepEqual(codeOf(blocked), [422, 'content_blocked']);
          assert.equal(simulator.requests.length, sent, 'no model has read it');
          simulator.enqueue(says('{}'));
          const masked = await door(app, { ...more(mail), stream });
          assert.equal(masked.status, 200, masked.text);
          const asked = JSON.stringify(simulator.lastRequest().body);
          assert.match(asked, /\[redacted\]/);
          assert.ok(!asked.includes(mail), asked);
          const runId = masked.headers.get('x-run-id') ?? '';
          assert.match(JSON.stringify((await app.client.runs.input({ params: { runId } })).body), /redacted|hello/i);
          if (door === respond && !stream) {
            const kept = (await send(app, `/responses/${masked.body.id}`)).body;
            assert.deepEqual(kept, masked.body);
            assert.match(JSON.stringify([kept.text, kept.metadata]), /\[redacted\]/);
          }
        });
    await assertNowhere(app, secret);
    await assertNowhere(app, mail);
  },
);
