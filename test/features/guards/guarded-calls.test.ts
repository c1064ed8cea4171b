import assert from 'node:assert/strict';
import { ToolError } from '../../../src/engine/tools/tool.ts';
import { type AppSetup, forEachDoor, type OpenApp } from '../../support/app.ts';
import { fileOf } from '../attachments/files.ts';
import { followToEnd, getRun, listRuns, refusal, runJson, runStream, start, tool } from '../runs/run-calls.ts';
import { save, skill } from '../skills/skill-bodies.ts';
import {
  asksFor,
  assertNowhere,
  audited,
  call,
  findings,
  local,
  mail,
  ofType,
  pattern,
  recordingGuard,
  says,
  secret,
  sent,
  texts,
} from './guard-world.ts';

const guarded = { ContentGuard: { Pattern: pattern } };
const placeholder = '[content_blocked]';
const anyObject = { type: 'object' };

/** A guarded service whose agent has one tool. */
const openWith = (
  open: OpenApp,
  name: string,
  execute: Parameters<typeof tool>[1],
  more: Partial<AppSetup> & { readonly tool?: Parameters<typeof tool>[2] } = {},
) => {
  const { tool: members, ...setup } = more;
  return open({
    simulator: {},
    service: guarded,
    tools: [tool(name, execute, { inputSchema: anyObject, ...members })],
    agents: [{ name: 'helper', model: local, toolNames: [name] }],
    ...setup,
  });
};

forEachDoor('TOOL-11 GUARD-10 a tool result is inspected as a whole, before it is cut', async (open) => {
  const app = await openWith(open, 'look', async () => ({ text: `${'x'.repeat(500)} ${mail}`, more: [mail] }), {
    tool: { maxOutputBytes: 100 },
  });
  app.simulator.enqueue(asksFor(call('look')), says('Seen.'));
  const { runId, events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.deepEqual(findings(events), [['content.masked', 'ToolResult', 'pattern', 'pii:Email']]);
  assert.equal(ofType(events, 'tool.output-truncated').length, 1);
  assert.match(sent(app), /truncated/);
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.equal(body[0]?.succeeded, true);
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-17 GUARD-18 a blocked tool result ends the run once its call is recorded', async (open) => {
  let calls = 0;
  const app = await openWith(open, 'look', async () => `${'x'.repeat(++calls)} ${secret}`, {
    agents: [
      { name: 'helper', model: { ...local, allowConcurrentToolCalls: true }, toolNames: ['look'] },
      { name: 'quiet', model: local, toolNames: ['look'] },
    ],
  });
  app.simulator.enqueue(asksFor(call('look', {}, 'c1'), call('look', { n: 1 }, 'c2')));
  const { runId, events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.deepEqual(findings(events), [['content.blocked', 'ToolResult', 'pattern', 'denied-term:0']], 'one of two');
  assert.deepEqual(
    ofType(events, 'tool.invoked').map((event) => event['result']),
    [placeholder, placeholder],
  );
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    body.map(({ result, succeeded }) => [result, succeeded]),
    [
      [placeholder, true],
      [placeholder, true],
    ],
  );
  assert.equal((await getRun(app.client, runId)).error?.class, 'ContentBlocked');
  assert.equal(app.simulator.requests.length, 1, 'the model is not called again');
  assert.equal((await audited(app)).length, 1);
  await assertNowhere(app, secret);
});

forEachDoor('GUARD-5 what a failing tool says is inspected as well, and what it threw is not logged', async (open) => {
  const app = await openWith(open, 'look', async () => {
    throw new ToolError(`Ask ${mail}`);
  });
  app.simulator.enqueue(asksFor(call('look')), says('Failed.'));
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.equal(ofType(events, 'tool.failed')[0]?.['error'], 'Ask [redacted]');
  assert.match(sent(app), /Ask \[redacted\]/);
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-9 a mask of arguments changes what is recorded and streamed; the tool gets them', async (open) => {
  const got: unknown[] = [];
  const app = await openWith(open, 'send', async (args) => {
    got.push(args);
    // What another process would go on with, while the call is made.
    await assertNowhere(app, mail);
    assert.match(await app.store.text(), /redacted/);
    return 'sent';
  });
  const args = { to: [mail], card: 4_111_111_111_111_111, note: 'a\\u0040b', count: 3 };
  app.simulator.enqueue(asksFor(call('send', args)), says('Done.'));
  const { runId, events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  const kept = { to: ['[redacted]'], card: '[redacted]', note: 'a\\u0040b', count: 3 };
  assert.deepEqual(got, [args]);
  assert.deepEqual(ofType(events, 'tool.invoking')[0]?.['arguments'], kept);
  assert.deepEqual(findings(events), [
    ['content.masked', 'ModelOutput', 'pattern', 'pii:Email'],
    ['content.masked', 'ModelOutput', 'pattern', 'pii:CreditCard'],
  ]);
  const { body } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(JSON.parse(body[0]?.arguments ?? ''), kept);
  assert.ok(!sent(app).includes(mail), 'nor does the model read them again');
  await assertNowhere(app, mail);
  await assertNowhere(app, '4111111111111111');
});

forEachDoor(
  'GUARD-9 every string of the arguments, and every name that the tool does not declare, is inspected as the model’s, with the tool’s name',
  async (open) => {
    const recorder = recordingGuard();
    const inputSchema = { type: 'object', properties: { city: { type: 'string' }, when: { type: 'object' } } };
    const app = await openWith(open, 'look', async () => 'fine', {
      module: { guards: [recorder.guard] },
      service: {},
      tool: { inputSchema },
    });
    app.simulator.enqueue(
      asksFor(call('look', { city: 'Bern', when: { odd: ['now', 'now', ''], year: 2024 } })),
      says('Ok.'),
    );
    await runJson(app.client, 'helper', 'Hi');
    assert.deepEqual(
      recorder.seen.map(({ source, text, toolName }) => [source, text, toolName]),
      [
        ['UserMessage', 'Hi', null],
        ['ModelOutput', 'Bern', 'look'],
        ['ModelOutput', 'odd', 'look'],
        ['ModelOutput', 'now', 'look'],
        ['ModelOutput', 'year', 'look'],
        ['ToolResult', 'fine', 'look'],
        ['ModelOutput', 'Ok.', null],
      ],
    );
  },
);

forEachDoor('GUARD-11 a blocked child fails, and its caller reads a tool error and goes on', async (open) => {
  const script = [
    { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'It said: {{last}}' } },
    { when: { model: 'boss' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'Go' } }] } },
    { when: { model: 'child' }, reply: { text: `It is ${secret}.` } },
  ];
  const model = (name: string) => ({ provider: 'demo', model: name });
  const app = await open({
    script,
    service: guarded,
    agents: [
      { name: 'child', model: model('child') },
      { name: 'boss', model: model('boss'), callableAgentNames: ['child'] },
    ],
  });
  const { events, runId } = await runStream(app.client, 'boss', 'Hi');
  assert.equal(events.at(-1)?.['output'], 'It said: Agent "child" failed.');
  const [child] = await listRuns(app.client, { parentRunId: runId });
  assert.equal(child?.error?.class, 'ContentBlocked');
  assert.deepEqual(findings(await followToEnd(app.client, child?.id ?? '')), [
    ['content.blocked', 'ModelOutput', 'pattern', 'denied-term:0'],
  ]);
  assert.equal((await audited(app))[0]?.[0], `run:${child?.id}`);
  await assertNowhere(app, secret);
});

forEachDoor('RUN-32 GUARD-5 results of the client’s program are inspected', async (open) => {
  const recorder = recordingGuard();
  const app = await openWith(open, 'ask', async () => '', {
    module: {
      guards: [recorder.guard],
      tools: [{ name: 'pick', description: 'Picks', inputSchema: anyObject, runsOnClient: true } as never],
    },
    tools: [{ name: 'pick', description: 'Picks', inputSchema: anyObject, runsOnClient: true } as never],
    agents: [{ name: 'helper', model: local, toolNames: ['pick'] }],
  });
  const waits = async (id: string) => {
    app.simulator.enqueue(asksFor(call('pick', { of: mail }, id)));
    const { clientToolCalls } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    assert.deepEqual(clientToolCalls[0]?.arguments, { of: '[redacted]' }, 'what waits is what is kept');
    return clientToolCalls[0]?.callId ?? '';
  };
  app.simulator.enqueue();
  const first = await waits('c1');
  app.simulator.enqueue(says('Thanks.'));
  await runJson(app.client, 'helper', { sessionId: 's', toolResults: [{ callId: first, result: `of ${mail}` }] });
  assert.match(sent(app), /of \[redacted\]/);
  assert.ok(texts(recorder.seen).some(([source, text]) => source === 'ToolResult' && text === `of ${mail}`));
  const second = await waits('c2');
  const answer = { sessionId: 's', toolResults: [{ callId: second, errorMessage: secret }] };
  assert.equal((await refusal(runJson(app.client, 'helper', answer))).code, 'content-blocked');
  await assertNowhere(app, secret);
  await assertNowhere(app, mail);
});

forEachDoor(
  'APPR-17 GUARD-5 reasons are inspected, and a waiting call is shown and made as it is kept',
  async (open) => {
    const got: unknown[] = [];
    const shown: unknown[] = [];
    const app = await openWith(
      open,
      'send',
      async (args) => {
        got.push(args);
        return 'sent';
      },
      {
        tool: { requiresApproval: true, effect: 'External' },
        module: {
          approvalPresenters: [
            {
              toolName: 'send',
              async present({ arguments: args }) {
                shown.push(args);
                return { entityType: null, entityId: null, entityName: null, message: `Send to ${args['to']}` };
              },
            },
          ],
        },
      },
    );
    const waits = async (id: string) => {
      app.simulator.enqueue(asksFor(call('send', { to: mail }, id)));
      const { approvals } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
      assert.deepEqual(approvals[0]?.arguments, { to: '[redacted]' });
      assert.equal(approvals[0]?.presentation?.message, 'Send to [redacted]');
      return approvals[0]?.requestId ?? '';
    };
    const first = await waits('c1');
    app.simulator.enqueue(says('A pity.'));
    const no = { approved: false, reason: ` Ask ${mail} ` };
    await runJson(app.client, 'helper', { sessionId: 's', approvals: [{ requestId: first, ...no }] });
    assert.match(sent(app), /Not approved: Ask \[redacted\]/);
    const second = await waits('c2');
    app.simulator.enqueue(says('Done.'));
    await runJson(app.client, 'helper', { sessionId: 's', approvals: [{ requestId: second, approved: true }] });
    assert.deepEqual(got, [{ to: '[redacted]' }], 'what was approved is what is done');
    const third = await waits('c3');
    const blocked = { sessionId: 's', approvals: [{ requestId: third, approved: false, reason: secret }] };
    assert.equal((await refusal(runJson(app.client, 'helper', blocked))).code, 'content-blocked');
    await assertNowhere(app, secret);
    await assertNowhere(app, mail);
  },
);

forEachDoor('GUARD-23 a reason in the mailbox is inspected with its decision, outside of a run', async (open) => {
  const app = await openWith(open, 'send', async () => 'sent', { tool: { requiresApproval: true } });
  app.simulator.enqueue(asksFor(call('send')), says('A pity.'));
  const reply = await start(
    app.client,
    'helper',
    { message: 'Hi', sessionId: 's' },
    { headers: { prefer: 'respond-async' } },
  );
  assert.equal(reply.status, 202);
  await followToEnd(app.client, reply.body.runId);
  const [row] = (await app.client.approvals.list({ query: {} })).body;
  const decide = (reason: string) =>
    app.client.approvals.decide({ params: { id: row?.id ?? '' }, body: { approved: false, reason } });
  const problem = await refusal(decide(secret));
  assert.deepEqual(
    [problem.status, problem.code, problem.errorType, problem.guardName, problem.ruleName],
    [422, 'content-blocked', 'content_blocked', 'pattern', 'denied-term:0'],
  );
  assert.deepEqual(await audited(app), [
    [`request:${problem.requestId}`, { source: 'UserMessage', guardName: 'pattern', ruleName: 'denied-term:0' }],
  ]);
  const { body: decided } = await decide(`Ask ${mail}`);
  assert.deepEqual([decided.status, decided.reason], ['Rejected', 'Ask [redacted]']);
  await followToEnd(app.client, decided.continuationRunId ?? '');
  assert.match(sent(app), /Not approved: Ask \[redacted\]/);
  await app.close();
  await assertNowhere(app, secret);
  await assertNowhere(app, mail);
});

forEachDoor('SKILL-26 instructions and resources of skills are inspected as such', async (open) => {
  const recorder = recordingGuard();
  const app = await open({ simulator: {}, service: guarded, module: { guards: [recorder.guard] } });
  await save(
    app,
    skill('mailing', { instructions: `Write to ${mail}.`, resources: [{ name: 'a.md', content: secret }] }),
  );
  await app.createAgent({ name: 'helper', model: local, skillNames: ['mailing'] });
  app.simulator.enqueue(asksFor(call('load_skill', { skillName: 'mailing' })), says('Ok.'));
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.match(sent(app), /Write to \[redacted\]\./);
  assert.deepEqual(findings(events), [['content.masked', 'SkillResource', 'pattern', 'pii:Email']]);
  app.simulator.enqueue(asksFor(call('read_skill_resource', { skillName: 'mailing', resourceName: 'a.md' })));
  assert.equal((await refusal(runJson(app.client, 'helper', 'Hi'))).code, 'content-blocked');
  assert.deepEqual(
    recorder.seen.filter(({ source }) => source === 'SkillResource').map(({ toolName }) => toolName),
    ['load_skill', 'read_skill_resource'],
  );
});

forEachDoor('GUARD-5 GUARD-7 texts that are attached are inspected in every turn that sends them', async (open) => {
  const app = await open({ simulator: {}, service: guarded, agents: [{ name: 'helper', model: local }] });
  const upload = async (content: string, name: string) =>
    (await app.client.attachments.upload({ query: {}, file: fileOf(content, name) })).body.id;
  const letter = await upload(`Dear ${mail}`, `to ${mail}.txt`);
  app.simulator.enqueue(says('Read.'), says('Again.'));
  const { events } = await runStream(app.client, 'helper', {
    message: 'Hi',
    attachmentIds: [letter],
    sessionId: 's',
  });
  assert.deepEqual(findings(events), [
    ['content.masked', 'Document', 'pattern', 'pii:Email'],
    ['content.masked', 'Document', 'pattern', 'pii:Email'],
  ]);
  assert.match(sent(app), /to \[redacted\].*Dear \[redacted\]/);
  await runJson(app.client, 'helper', { message: 'And?', sessionId: 's' });
  assert.match(sent(app), /Dear \[redacted\]/);
  assert.ok(!sent(app).includes(mail));
  const plan = await upload(`The plan of ${secret}`, 'plan.txt');
  const problem = await refusal(runJson(app.client, 'helper', { message: 'Hi', attachmentIds: [plan] }));
  assert.deepEqual([problem.code, problem.ruleName], ['content-blocked', 'denied-term:0']);
});

forEachDoor('GUARD-6 a summary and a judge’s feedback are what a model writes, and are inspected', async (open) => {
  const app = await open({
    simulator: {},
    service: guarded,
    agents: [
      {
        name: 'helper',
        model: local,
        compaction: { strategy: 'Summarization', triggerMessages: 3, minimumPreservedGroups: 1 },
      },
      {
        name: 'looped',
        model: local,
        harness: { disableModes: true, loop: { criteria: [{ kind: 'aiJudge', judgeCriteria: ['good'] }] } },
      },
    ],
  });
  app.simulator.enqueue(says('One.'), says(`They wrote to ${mail}`), says('Two.'));
  await runJson(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  await runJson(app.client, 'helper', { message: 'And?', sessionId: 's' });
  assert.match(sent(app), /They wrote to \[redacted\]/);
  app.simulator.enqueue(says(`It was ${secret}`));
  const problem = await refusal(runJson(app.client, 'helper', { message: 'So?', sessionId: 's' }));
  assert.equal(problem.code, 'content-blocked', 'not: the summary failed, so the history is sent as it is');
  app.simulator.enqueue(says('Draft.'), says('{"met":false,"feedback":"mention \\u0050roject Zeus"}'));
  assert.equal((await refusal(runJson(app.client, 'looped', 'Hi'))).code, 'content-blocked');
  await assertNowhere(app, secret);
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-5 what a module’s criterion tells the model is inspected as Unknown', async (open) => {
  const recorder = recordingGuard(({ text }) =>
    text.includes('Zeus') ? { decision: 'Mask', text: 'again', rules: ['r'] } : { decision: 'Allow' },
  );
  let turns = 0;
  const app = await open({
    simulator: {},
    module: {
      guards: [recorder.guard],
      loopCriteria: { own: async () => ({ met: ++turns > 1, feedback: `more ${secret}` }) },
    },
    agents: [{ name: 'helper', model: local, harness: { disableModes: true, loop: { criteria: [{ kind: 'own' }] } } }],
  });
  app.simulator.enqueue(says('One.'), says('Two.'));
  const { events } = await runStream(app.client, 'helper', 'Hi');
  assert.deepEqual(findings(events), [['content.masked', 'Unknown', 'recorder', 'r']]);
  assert.match(sent(app), /again/);
  await assertNowhere(app, secret);
});

forEachDoor('GUARD-5 what the agent remembers is inspected when it comes back', async (open) => {
  const app = await open({
    simulator: {},
    service: guarded,
    agents: [{ name: 'helper', model: local, harness: { disableModes: true } }],
  });
  app.simulator.enqueue(
    asksFor(call('file_write', { path: 'a.txt', content: `Mail ${mail}` })),
    asksFor(call('file_read', { path: 'a.txt' }, 'c2')),
    says('Read.'),
  );
  const { events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.ok(ofType(events, 'tool.invoked').some((event) => String(event['result']).includes('[redacted]')));
  assert.ok(!sent(app).includes(mail));
});

forEachDoor('GUARD-14 what the agent writes into its memory is kept masked', async (open) => {
  const app = await open({
    simulator: {},
    service: guarded,
    agents: [{ name: 'helper', model: local, harness: { disableModes: true } }],
  });
  app.simulator.enqueue(
    asksFor(call('file_write', { path: 'a.txt', content: `Mail ${mail}` })),
    asksFor(call('todo_write', { todos: [{ text: `Ask ${mail}`, status: 'pending' }] }, 'c2')),
    says('Kept.'),
  );
  await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
  assert.ok((await app.store.text()).includes('"Mail [redacted]"'));
  await assertNowhere(app, mail);
});

forEachDoor('GUARD-5 GUARD-9 searches of the provider are told once they were inspected', async (open) => {
  const model = { provider: 'anthropic', model: 'claude-sonnet-4-5' };
  const app = await open({ simulator: {}, service: guarded, agents: [{ name: 'fan', model, harness: {} }] });
  const search = (query: string, title: string) => ({
    answer: { search: { query, pages: [{ url: 'https://example.com/a', title }] }, text: ['The home team.'] },
  });
  app.simulator.enqueue(search('who won', 'A page'), search(`who is ${mail}`, `Mail ${mail}`));
  const plain = await runStream(app.client, 'fan', { message: 'Who won?', sessionId: 's' });
  assert.equal(ofType(plain.events, 'tool.invoked').length, 1);
  const masked = await runStream(app.client, 'fan', { message: 'Who?', sessionId: 's' });
  assert.match(sent(app), /web_search_tool_result/, 'what nobody changed goes back to the provider');
  assert.deepEqual(findings(masked.events), [
    ['content.masked', 'ModelOutput', 'pattern', 'pii:Email'],
    ['content.masked', 'ToolResult', 'pattern', 'pii:Email'],
  ]);
  assert.match(JSON.stringify(ofType(masked.events, 'tool.invoking')[0]?.['arguments']), /\[redacted\]/);
  assert.match(String(ofType(masked.events, 'tool.invoked')[0]?.['result']), /Mail \[redacted\]/);
  await assertNowhere(app, mail);
  app.simulator.enqueue(search('who', secret));
  const blocked = await runStream(app.client, 'fan', { message: 'And?' });
  assert.deepEqual(findings(blocked.events), [['content.blocked', 'ToolResult', 'pattern', 'denied-term:0']]);
  assert.equal(ofType(blocked.events, 'tool.invoking').length, 0);
  await assertNowhere(app, secret);
});
