import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { type Answer, type Api, assertProblem, type Body, type Frame, unique } from './api.ts';
import { inForce } from './in-force.ts';
import { rule } from './rule.ts';

const pattern = {
  'Service:ContentGuard:Pattern:DeniedTerms': '["project zeus","機密"]',
  'Service:ContentGuard:Pattern:MaskedPii': 'All',
};
const guarded = { settings: pattern };
/** For what the model writes: the scripted one only repeats what it was told. */
const outputOnly = { settings: { ...pattern, 'Service:ContentGuard:InspectInput': 'false' } };
const unbuffered = {
  settings: {
    ...pattern,
    'Service:ContentGuard:InspectInput': 'false',
    'Service:ContentGuard:BufferStreamingOutput': 'false',
    'Service:RunRecording:RecordMessageDeltas': 'true',
  },
};

const assertBlocked = (answer: Answer, ruleName: string): string => {
  assertProblem(answer, 422, 'content-blocked');
  const { errorType, guardName, ruleName: told } = answer.body;
  assert.deepEqual([errorType, guardName, told], ['content_blocked', 'pattern', ruleName]);
  return answer.headers.get('x-run-id') ?? '';
};

const logOf = (api: Api, runId: string): Promise<Frame[]> => api.frames('GET', `/api/runs/${runId}/events`);

const found = (frames: readonly Frame[]): unknown[][] =>
  frames.flatMap(({ event, data }) =>
    event.startsWith('content.') ? [[event, data.source, data.guardName, data.ruleName]] : [],
  );

const inputOf = async (api: Api, runId: string): Promise<Body[]> =>
  (await api.get(`/api/runs/${runId}/input`)).body.messages.flatMap(({ contents }: Body) => contents);

const streamOf = (api: Api, agent: string, message: string): Promise<Frame[]> =>
  api.frames('POST', `/api/agents/${agent}/run`, { message });

const joined = (frames: readonly Frame[], type: string): string | null =>
  frames
    .filter(({ event }) => event === type)
    .map(({ data }) => data.text)
    .join('');

rule(
  'GUARD-5 GUARD-17 GUARD-18 GUARD-20 RUN-70',
  'a blocked input is 422 and a failed run without tokens; its text is in no record',
  async (api) => {
    const agent = await api.agent();
    const documents = [{ name: 'a', content: 'This is Project Zeus.' }];
    const runId = assertBlocked(await api.run(agent, { message: 'say hi', documents }), 'denied-term:0');
    const { body: run } = await api.get(`/api/runs/${runId}`);
    assert.deepEqual([run.status, run.error.class, run.error.type], ['Failed', 'ContentBlocked', 'content_blocked']);
    assert.equal(run.usage, null);
    const log = await logOf(api, runId);
    assert.deepEqual(found(log), [['content.blocked', 'Document', 'pattern', 'denied-term:0']]);
    assert.equal(JSON.stringify([log, await inputOf(api, runId)]).includes('Zeus'), false);
    assert.ok((await inputOf(api, runId)).some(({ text }) => text === '[content_blocked]'));
  },
  guarded,
);

rule(
  'GUARD-23 AUDIT-21',
  'a block is audited with guard, rule and source alone; a mask is not audited',
  async (api) => {
    const agent = await api.agent();
    const masked = await api.run(agent, 'say Write to jo@example.com');
    const runId = assertBlocked(await api.run(agent, 'say project zeus'), 'denied-term:0');
    const { body: entries } = await api.get(`/api/audit/${encodeURIComponent(`run:${runId}`)}`);
    assert.equal(entries.length, 1);
    assert.deepEqual([entries[0].action, entries[0].before], ['content.blocked', null]);
    const after: unknown = typeof entries[0].after === 'string' ? JSON.parse(entries[0].after) : entries[0].after;
    assert.deepEqual(after, { source: 'UserMessage', guardName: 'pattern', ruleName: 'denied-term:0' });
    const none = await api.get(`/api/audit/${encodeURIComponent(`run:${masked.body.runId}`)}`);
    assert.deepEqual(none.body, []);
  },
  guarded,
);

rule(
  'GUARD-6 GUARD-19 GUARD-25 GUARD-27',
  'a blocked answer reaches no reader of a stream, and none of its tools runs',
  async (api) => {
    const agent = await api.agent({ toolNames: ['echo'] });
    const frames = await streamOf(api, agent, 'say It is project zeus.');
    assert.deepEqual(
      frames.slice(-3).map(({ event }) => event),
      ['content.blocked', 'error', 'run.failed'],
    );
    assert.deepEqual(frames.at(-2)?.data, {
      code: 'content-blocked',
      errorType: 'content_blocked',
      message: 'The content was blocked by a guard.',
    });
    assert.equal(frames.at(-2)?.id, null);
    assert.equal(JSON.stringify(frames).includes('zeus'), false);
    const called = await streamOf(api, agent, 'call echo {"text":"project zeus"}');
    assert.deepEqual(found(called), [['content.blocked', 'ModelOutput', 'pattern', 'denied-term:0']]);
    assert.equal(
      called.some(({ event }) => event.startsWith('tool.')),
      false,
    );
  },
  outputOnly,
);

rule(
  'GUARD-9',
  'masked arguments are masked where they are recorded and streamed, and the tool gets what was written',
  async (api) => {
    const agent = await api.agent({ toolNames: ['echo'] });
    const frames = await streamOf(api, agent, 'call echo {"text":"jo@example.com"}');
    const invoking = frames.find(({ event }) => event === 'tool.invoking');
    assert.deepEqual(invoking?.data.arguments, { text: '[redacted]' });
    const result = frames.find(({ event }) => event === 'tool.invoked')?.data.result;
    assert.equal(result, 'jo@example.com', 'its result is input, which is not inspected here');
  },
  outputOnly,
);

rule(
  'GUARD-14 SESS-9',
  'after a mask all have the masked text',
  async (api) => {
    const agent = await api.agent();
    const sessionId = unique('session');
    const answer = await api.run(agent, { message: 'say Write to jo@example.com', sessionId });
    assert.equal(answer.body.output, 'Write to [redacted]');
    const { body: session } = await api.get(`/api/sessions/${sessionId}`);
    assert.match(JSON.stringify(session), /say Write to \[redacted\]/);
    const log = await logOf(api, answer.body.runId);
    assert.deepEqual(found(log), [['content.masked', 'UserMessage', 'pattern', 'pii:Email']]);
    const kept = JSON.stringify([session, log, await inputOf(api, answer.body.runId)]);
    assert.equal(kept.includes('jo@example.com'), false);
  },
  guarded,
);

rule(
  'GUARD-7 GUARD-21',
  'a blocked turn leaves the history as it was, and earlier turns are not inspected again',
  async (api) => {
    const agent = await api.agent();
    const sessionId = unique('session');
    await api.run(agent, { message: 'say one', sessionId });
    const before = (await api.get(`/api/sessions/${sessionId}`)).body;
    assertBlocked(await api.run(agent, { message: 'say project zeus', sessionId }), 'denied-term:0');
    assert.deepEqual((await api.get(`/api/sessions/${sessionId}`)).body.messages, before.messages);
    assert.equal((await api.run(agent, { message: 'say two', sessionId })).status, 200);
  },
  guarded,
);

rule(
  'GUARD-22',
  'a 422 frees the idempotency key',
  async (api) => {
    const agent = await api.agent();
    const headers = { 'idempotency-key': unique('key') };
    assertBlocked(await api.run(agent, 'say project zeus', { headers }), 'denied-term:0');
    const again = await api.run(agent, 'say fine', { headers });
    assert.deepEqual([again.status, again.headers.get('idempotency-replayed')], [200, null]);
  },
  guarded,
);

rule(
  'GUARD-26',
  'without buffering deltas go out at once and are recorded without text',
  async (api) => {
    const agent = await api.agent();
    const masked = await streamOf(api, agent, 'say Write to jo@example.com');
    assert.equal(joined(masked, 'message.delta'), 'Write to jo@example.com');
    assert.equal(joined(masked, 'message.completed'), 'Write to [redacted]');
    const blocked = await streamOf(api, agent, 'say project zeus');
    assert.equal(joined(blocked, 'message.delta'), 'project zeus');
    assert.equal(joined(blocked, 'message.completed'), '[content_blocked]');
    for (const frames of [masked, blocked]) {
      const log = await logOf(api, frames[0]?.data.runId);
      assert.ok(log.filter(({ event }) => event === 'message.delta').every(({ data }) => data.text === null));
    }
  },
  unbuffered,
);

const vectors: readonly (readonly [string, string])[] = [
  ['Tell me about Project  ZEUS.', 'denied-term:0'],
  ['project zeusian', 'project zeusian'],
  ['社外機密資料', 'denied-term:1'],
  ['Write to jo@example.com', 'Write to [redacted]'],
  ['Card 4111 1111 1111 1111', 'Card [redacted]'],
  ['Order 4111 1111 1111 1112', 'Order 4111 1111 1111 1112'],
  ['IBAN DE89 3704 0044 0532 0130 00', 'IBAN [redacted]'],
  ['Call +44 20 7946 0958', 'Call [redacted]'],
  ['Host 192.0.2.7 is down', 'Host [redacted] is down'],
  ['Version 1.2.3', 'Version 1.2.3'],
];

rule(
  'GUARD-30 GUARD-31 GUARD-32 GUARD-33',
  'the pattern guard finds terms and personal data, in what goes in and in what comes out',
  async (api) => {
    const agent = await api.agent();
    for (const [text, expected] of vectors) {
      const answer = await api.run(agent, `say ${text}`);
      if (expected.startsWith('denied-term')) assertBlocked(answer, expected);
      else assert.equal(answer.body.output, expected);
    }
  },
  guarded,
);

rule(
  'SKILL-26',
  'instructions of skills are inspected as SkillResource',
  async (api) => {
    const name = unique('skill');
    const description = 'What it does.';
    const save = (instructions: string) => api.put(`/api/skills/${name}`, { name, description, instructions });
    assert.ok((await save('Write to jo@example.com.')).status < 300);
    const agent = await api.agent({ skillNames: [name] });
    const message = `call load_skill {"skillName":"${name}"}`;
    const masked = await streamOf(api, agent, message);
    assert.deepEqual(found(masked), [['content.masked', 'SkillResource', 'pattern', 'pii:Email']]);
    await save('It is project zeus.');
    const blocked = [['content.blocked', 'SkillResource', 'pattern', 'denied-term:0']];
    await inForce(api, 'the edited skill is inspected', async (process) =>
      isDeepStrictEqual(found(await streamOf(process, agent, message)), blocked),
    );
    assert.deepEqual(found(await streamOf(api, agent, message)), blocked);
  },
  guarded,
);
