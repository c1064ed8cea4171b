import assert from 'node:assert/strict';
import {
  type AppSetup,
  forEachDurableService,
  forEachService,
  forEachServiceInFile,
  forEachSharedService,
  type TestApp,
} from '../../support/app.ts';
import { findings, recordingGuard } from '../guards/guard-world.ts';
import { enqueue, followToEnd, refusal, runJson, runStream, start } from '../runs/run-calls.ts';
import { type Asked, connected, mcpSetup, type RawServer, rawServer, tool, withTools } from './mcp-world.ts';

const unasked = { requiresApproval: false };
/** Calls the tool for a message, and says in whichever run what came of it. */
const script = [
  { when: { tool: 'weather_look' }, reply: { text: '{{last}}' } },
  { when: { message: 'Hi' }, reply: { toolCalls: [{ name: 'weather_look', arguments: { city: 'Ulm' } }] } },
];
const talks = [...script, { reply: { text: 'Fine.' } }];
const capabilities = 'io.modelcontextprotocol/clientCapabilities';
// What JSON, a database and a header could each spoil.
const state = 'st\u0000ate "\u{1f512}" \\u0041 \ud800 é\r\n';

const form = { type: 'object', properties: { name: { type: 'string' } } };
const question = (message = 'Who are you?', more: object = {}) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: form, ...more },
});

/** Asks with these entries until it has answers to all of them, and says then what it was told. */
const asks =
  (inputRequests: object, more: object = {}) =>
  (asked: Asked) => {
    if (asked.method !== 'tools/call') return withTools([tool('look')])(asked);
    const { inputResponses } = asked.params;
    if (inputResponses === undefined) return { resultType: 'input_required', inputRequests, ...more };
    return { resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(inputResponses) }] };
  };

const callsTo = (server: RawServer): Asked[] => server.asked.filter(({ method }) => method === 'tools/call');
const declared = ({ params }: Asked): unknown => params['_meta'][capabilities].elicitation;

const helped = async (app: TestApp, server: RawServer, more: object = {}): Promise<void> => {
  await connected(app.client, server.endpoint, { ...unasked, ...more });
  await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
};

const ask = async (app: TestApp, sessionId = 's1') => runJson(app.client, 'helper', { message: 'Hi', sessionId });
const answer = (app: TestApp, callId: string, result: unknown, sessionId = 's1') =>
  runJson(app.client, 'helper', { sessionId, toolResults: [{ callId, result: JSON.stringify(result) }] });

forEachService(
  'MCP-38 MCP-39 a question of a server is put to the caller, whose answer goes back with the state',
  async (open, t) => {
    const server = await rawServer(
      t,
      asks(
        {
          who: question(),
          where: question('Where?', { mode: 'url', requestedSchema: undefined, url: 'https://example.com/login?a=1' }),
        },
        { requestState: state },
      ),
    );
    const app = await open(mcpSetup({ script }));
    await helped(app, server);
    const { events, runId } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's1' });
    const requested = events.filter(({ type }) => type === 'client-tool.requested');
    const [first, second] = requested;
    assert.deepEqual(
      requested.map(({ toolName, arguments: args, elicitation }) => [toolName, args, elicitation]),
      [
        ['weather_look', { city: 'Ulm' }, { mode: 'form', message: 'Who are you?', requestedSchema: form, url: null }],
        [
          'weather_look',
          { city: 'Ulm' },
          { mode: 'url', message: 'Where?', requestedSchema: null, url: 'https://example.com/login?a=1' },
        ],
      ],
    );
    assert.equal(events.at(-1)?.type, 'run.awaiting-input');
    const ids = [String(first?.['callId']), String(second?.['callId'])] as const;
    assert.notEqual(ids[0], ids[1]);
    const { body: calls } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual(
      calls.map(({ source, succeeded, error }) => [source, succeeded, error]),
      [['weather', false, 'The call has asked for input.']],
    );
    const usage = async () =>
      (await app.client.tools.usage({ query: {} })).body.map(({ totalCalls, failedCalls }) => [
        totalCalls,
        failedCalls,
      ]);
    assert.deepEqual(await usage(), [], 'how it went is not known yet');
    assert.deepEqual(declared(callsTo(server)[0] as Asked), { form: {}, url: {} });

    const sent = (...toolResults: { callId: string; result?: string; errorMessage?: string }[]) =>
      runJson(app.client, 'helper', { sessionId: 's1', toolResults });
    const accepts = { action: 'accept', content: { name: 'Ada' } };
    const both = (result: string) => [
      { callId: ids[0], result },
      { callId: ids[1], result: '{"action":"decline"}' },
    ];
    for (const wrong of ['Ada', '{"action":"yes"}', '{"action":"accept","content":"Ada"}', '[]'])
      assert.deepEqual((await refusal(sent(...both(wrong)))).code, 'validation-failed', wrong);
    assert.equal((await refusal(sent(both('{"action":"cancel"}')[0] as never))).code, 'tool-results-missing');
    assert.equal(callsTo(server).length, 1, 'nothing was repeated for answers that were refused');

    const { output, runId: next } = await sent(...both(JSON.stringify(accepts)));
    assert.equal(output, JSON.stringify({ who: accepts, where: { action: 'decline' } }));
    assert.deepEqual(await usage(), [[1, 0]]);
    const [before, after, ...more] = callsTo(server);
    assert.deepEqual(more, []);
    assert.equal(after?.params['requestState'], state);
    assert.deepEqual(after?.params['arguments'], before?.params['arguments']);
    assert.notEqual(after?.id, before?.id);
    assert.equal((await app.client.runs.get({ params: { runId: next } })).body.continuedFromRunId, runId);
    assert.equal((await refusal(sent(...both(JSON.stringify(accepts))))).code, 'tool-call-answered');
    assert.equal(callsTo(server).length, 2);
  },
);

forEachServiceInFile(
  'MCP-38 answers without a state, a cancel, a second question, and a round without any',
  async (open, t) => {
    const server = await rawServer(t, asks({ who: question() }));
    const app = await open(mcpSetup({ script: talks }));
    await helped(app, server);
    const asked = await ask(app);
    assert.equal(asked.status, 'AwaitingInput');
    const callId = asked.clientToolCalls[0]?.callId ?? '';
    const canceled = await runJson(app.client, 'helper', {
      sessionId: 's1',
      toolResults: [{ callId, errorMessage: 'Nobody there.' }],
    });
    assert.equal(canceled.output, '{"who":{"action":"cancel"}}');
    assert.ok(!('requestState' in (callsTo(server)[1]?.params ?? {})));
    // A plain message leaves it unanswered.
    await ask(app, 's2');
    const calls = callsTo(server).length;
    assert.equal((await runJson(app.client, 'helper', { message: 'Never mind', sessionId: 's2' })).status, 'Completed');
    assert.equal(callsTo(server).length, calls);

    let round = 0;
    server.answer((one) => {
      if (one.method !== 'tools/call') return withTools([tool('look')])(one);
      round += 1;
      if (round === 1) return { resultType: 'input_required', requestState: 'one' };
      if (round < 4)
        return {
          resultType: 'input_required',
          requestState: `${one.params['requestState']}+`,
          inputRequests: { [`q${round}`]: question(`Round ${round}`) },
        };
      return {
        content: [
          { type: 'text', text: `${one.params['requestState']} ${JSON.stringify(one.params['inputResponses'])}` },
        ],
      };
    });
    const again = await ask(app, 's3');
    const second = await answer(
      app,
      again.clientToolCalls[0]?.callId ?? '',
      { action: 'accept', content: { name: 'A' } },
      's3',
    );
    assert.deepEqual(
      second.clientToolCalls.map(({ elicitation }) => elicitation?.message),
      ['Round 3'],
    );
    const last = await answer(
      app,
      second.clientToolCalls[0]?.callId ?? '',
      { action: 'accept', content: { name: 'B' } },
      's3',
    );
    assert.equal(last.output, 'one++ {"q3":{"action":"accept","content":{"name":"B"}}}');
  },
);

forEachServiceInFile(
  'MCP-39 nobody is asked where nobody could answer, and a server that asks all the same fails its call',
  async (open, t) => {
    const server = await rawServer(t, asks({ who: question() }, { requestState: state }));
    const app = await open(
      mcpSetup({
        script: [
          ...script,
          {
            when: { message: 'Ask', call: 1 },
            reply: { toolCalls: [{ name: 'call_helper', arguments: { message: 'Hi' } }] },
          },
          { when: { tool: 'call_helper' }, reply: { text: '{{last}}' } },
        ],
      }),
    );
    await helped(app, server);
    await app.createAgent({ name: 'caller', callableAgentNames: ['helper'] });
    const refusedText = 'Tool failed: weather asked for something that it cannot be given';
    assert.equal((await runJson(app.client, 'helper', 'Hi')).output, refusedText);
    const queued = await enqueue(app.client, 'helper', { message: 'Hi', sessionId: 's1' });
    assert.equal((await followToEnd(app.client, queued)).at(-1)?.['output'], refusedText);
    assert.equal((await runJson(app.client, 'caller', { message: 'Ask', sessionId: 's2' })).output, refusedText);
    assert.deepEqual(callsTo(server).map(declared), [undefined, undefined, undefined]);
    // Somebody answers this one; its replay has nobody.
    const { runId } = await ask(app, 's3');
    assert.notEqual(declared(callsTo(server).at(-1) as Asked), undefined);
    await app.client.replays.create({ params: { runId }, body: { toolMode: 'LiveTools' } });
    assert.equal(declared(callsTo(server).at(-1) as Asked), undefined);
  },
);

forEachServiceInFile(
  'MCP-39 a server cannot ask for ever, keep too much, or ask for what is no question',
  async (open, t) => {
    const server = await rawServer(t, asks({ who: question() }));
    const app = await open(mcpSetup({ script }));
    await helped(app, server);
    const failsWith = async (reply: object, text: RegExp, sessionId: string) => {
      server.answer((one) =>
        one.method === 'tools/call' ? { resultType: 'input_required', ...reply } : withTools([tool('look')])(one),
      );
      const { status, output } = await ask(app, sessionId);
      assert.equal(status, 'Completed', sessionId);
      assert.match(output ?? '', text, sessionId);
    };
    const calls = callsTo(server).length;
    await failsWith({ requestState: 'again' }, /^Tool failed: weather has asked 8 times$/, 'for-ever');
    assert.equal(callsTo(server).length - calls, 9);
    await failsWith(
      { requestState: 'é'.repeat(32_769) },
      /^Tool failed: the state that weather wants back is larger than 65536 bytes$/,
      'large',
    );
    await failsWith({}, /gave no valid answer$/, 'neither');
    const cannot = /^Tool failed: weather asked for something that it cannot be given$/;
    const wrong: Record<string, object> = {
      sampling: { who: question(), it: { method: 'sampling/createMessage', params: {} } },
      roots: { it: { method: 'roots/list' } },
      none: {},
      many: Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`q${index}`, question()])),
      script: { it: question('Go', { mode: 'url', url: 'javascript:alert(1)' }) },
      hidden: {
        it: question('Name?', {
          requestedSchema: { type: 'object', properties: { 'na\u200bme': { type: 'string' } } },
        }),
      },
    };
    for (const [name, inputRequests] of Object.entries(wrong)) await failsWith({ inputRequests }, cannot, name);
    // The largest that is taken.
    server.answer(asks({ who: question('a\u202eb') }, { requestState: 'é'.repeat(32_768) }));
    const most = await ask(app, 'most');
    assert.equal(most.clientToolCalls[0]?.elicitation?.message, 'a\\u{202e}b');
    await answer(app, most.clientToolCalls[0]?.callId ?? '', { action: 'decline' }, 'most');
    assert.equal(callsTo(server).at(-1)?.params['requestState'].length, 32_768);

    // Eight questions, one after another, are answered; the ninth is too much.
    server.answer((one) =>
      one.method === 'tools/call'
        ? { resultType: 'input_required', inputRequests: { who: question() } }
        : withTools([tool('look')])(one),
    );
    let asked = await ask(app, 'often');
    for (let round = 1; round <= 8; round += 1) {
      assert.equal(asked.status, 'AwaitingInput', `round ${round}`);
      asked = await answer(app, asked.clientToolCalls[0]?.callId ?? '', { action: 'decline' }, 'often');
    }
    assert.equal(asked.output, 'Tool failed: weather has asked 8 times');
  },
);

forEachServiceInFile('MCP-38 GUARD-5 questions and answers pass the guards', async (open, t) => {
  const server = await rawServer(t, asks({ who: question('Mail to mail@of.me') }));
  const recorder = recordingGuard(({ source, text }) => {
    if (text.includes('lure')) return { decision: 'Block', rule: 'lure' };
    if (!text.includes('mail@of.me') || source === 'UserMessage') return { decision: 'Allow' };
    return { decision: 'Mask', text: text.replaceAll('mail@of.me', '***'), rules: ['mail'] };
  });
  const app = await open(mcpSetup({ script, module: { guards: [recorder.guard] } }));
  await helped(app, server);
  const { events } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's1' });
  assert.deepEqual(findings(events), [['content.masked', 'RemoteTool', 'recorder', 'mail']]);
  const requested = events.find(({ type }) => type === 'client-tool.requested');
  const shown = (requested?.['elicitation'] ?? {}) as { readonly message?: string };
  assert.equal(shown.message, 'Mail to ***');
  const answered = await answer(app, String(requested?.['callId']), {
    action: 'accept',
    content: { name: 'mail@of.me' },
  });
  assert.equal(answered.output, '{"who":{"action":"accept","content":{"name":"***"}}}');
  assert.ok(
    recorder.seen.some(
      ({ source, toolName, text }) =>
        source === 'ToolResult' && toolName === 'weather_look' && text.includes('"accept"'),
    ),
  );
  server.answer(asks({ who: question('Name?', { requestedSchema: { type: 'object', title: 'mail@of.me' } }) }));
  assert.equal((await ask(app, 's2')).output, 'Tool failed: what it asks may not be shown.');
  server.answer(asks({ who: question('a lure') }));
  assert.equal((await refusal(ask(app, 's3'))).code, 'content-blocked');
});

forEachDurableService('MCP-38 a question outlives the service that asked it, sealed', async (open, t) => {
  const server = await rawServer(
    t,
    asks({ who: question('Words of the server') }, { requestState: 'what-the-server-keeps' }),
  );
  const setup: AppSetup = mcpSetup({
    script,
    service: {
      Egress: { AllowPrivateNetworkTargets: true },
      AtRest: { ActiveKeyId: 'k1', Keys: { k1: Buffer.alloc(32, 7).toString('base64') } },
    },
  });
  const first = await open(setup);
  await helped(first, server);
  const asked = await ask(first);
  const stored = await first.store.text();
  assert.ok(!stored.includes('what-the-server-keeps') && !stored.includes('Words of the server'));
  await first.close();
  const second = await open({ ...setup, folder: first.folder });
  const { output } = await answer(second, asked.clientToolCalls[0]?.callId ?? '', { action: 'decline' });
  assert.equal(output, '{"who":{"action":"decline"}}');
  assert.equal(callsTo(server).at(-1)?.params['requestState'], 'what-the-server-keeps');
});

forEachServiceInFile(
  'MCP-38 another server than the one that asked is given neither state nor answer',
  async (open, t) => {
    const server = await rawServer(t, asks({ who: question() }, { requestState: state }));
    const other = await rawServer(t, asks({ who: question() }));
    const app = await open(mcpSetup({ script }));
    await helped(app, server);
    const asked = await ask(app);
    await connected(app.client, other.endpoint, unasked);
    const { output } = await answer(app, asked.clientToolCalls[0]?.callId ?? '', { action: 'decline' });
    assert.equal(output, 'Tool failed: weather is not the server any more that has asked');
    assert.deepEqual([callsTo(server).length, callsTo(other).length], [1, 0]);
  },
);

forEachServiceInFile(
  'MCP-38 MCP-39 a server that speaks with a handshake by now is given no answer, and is no one that asks',
  async (open, t) => {
    const server = await rawServer(t, asks({ who: question() }, { requestState: state }));
    const app = await open(mcpSetup({ script }));
    await helped(app, server);
    const asked = await ask(app);
    server.answer((one) => {
      if (one.method === 'notifications/initialized') return { raw: (response) => response.writeHead(202).end() };
      if (one.method !== 'initialize') return asks({ who: question() })(one);
      return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'old', version: '1' } };
    });
    await connected(app.client, server.endpoint, { ...unasked, protocol: 'Handshake' });
    const { output } = await answer(app, asked.clientToolCalls[0]?.callId ?? '', { action: 'decline' });
    assert.equal(output, 'Tool failed: weather is not the server any more that has asked');
    assert.equal(callsTo(server).length, 1);
    assert.equal((await ask(app, 's2')).output, 'Tool failed: weather gave no valid answer');
  },
);

forEachServiceInFile(
  'MCP-38 APPR-1 what a person has approved is not asked about again, and an approval beside a question waits its turn',
  async (open, t) => {
    const server = await rawServer(t, (asked) => {
      const listed = [tool('look'), tool('erase', { annotations: { destructiveHint: true } })];
      if (asked.method !== 'tools/call') return withTools(listed)(asked);
      if (asked.params['name'] === 'look') return asks({ who: question() })(asked);
      return { content: [{ type: 'text', text: 'gone' }] };
    });
    const turn = (...names: string[]) => ({ toolCalls: names.map((name) => ({ name, arguments: {} })) });
    const app = await open(
      mcpSetup({
        script: [
          { when: { tool: 'weather_look' }, reply: { text: 'Done.' } },
          { when: { tool: 'weather_erase' }, reply: { text: 'Done.' } },
          { when: { tool: 'free_look' }, reply: { text: 'Done.' } },
          { when: { message: 'Hi' }, reply: turn('weather_look', 'weather_erase') },
          { when: { message: 'Mixed' }, reply: turn('free_look', 'weather_erase') },
        ],
      }),
    );
    await connected(app.client, server.endpoint);
    await connected(app.client, server.endpoint, { name: 'free', ...unasked });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look', 'weather_erase', 'free_look'] });
    const named = () =>
      ['look', 'erase'].map((name) => callsTo(server).filter(({ params }) => params['name'] === name).length);
    const approve = (requestIds: readonly string[], sessionId: string) =>
      runJson(app.client, 'helper', {
        sessionId,
        approvals: requestIds.map((requestId) => ({ requestId, approved: true })),
      });

    const waits = await ask(app);
    assert.deepEqual(
      waits.approvals.map(({ toolName }) => toolName),
      ['weather_look', 'weather_erase'],
    );
    const asked = await approve(
      waits.approvals.map(({ requestId }) => requestId),
      's1',
    );
    assert.deepEqual([asked.status, asked.approvals, named()], ['AwaitingInput', [], [1, 1]]);
    const done = await answer(app, asked.clientToolCalls[0]?.callId ?? '', { action: 'decline' });
    assert.deepEqual([done.status, named()], ['Completed', [2, 1]]);

    const first = await runJson(app.client, 'helper', { message: 'Mixed', sessionId: 's2' });
    assert.deepEqual([first.status, first.approvals, named()], ['AwaitingInput', [], [3, 1]]);
    const second = await answer(app, first.clientToolCalls[0]?.callId ?? '', { action: 'decline' }, 's2');
    assert.deepEqual(
      [second.status, second.approvals.map(({ toolName }) => toolName)],
      ['AwaitingApproval', ['weather_erase']],
    );
    const last = await approve(
      second.approvals.map(({ requestId }) => requestId),
      's2',
    );
    assert.deepEqual([last.status, named()], ['Completed', [4, 2]]);
  },
);

forEachSharedService('MCP-38 of two processes that bring an answer at once one repeats the call', async (open, t) => {
  const server = await rawServer(t, asks({ who: question() }));
  const setup = mcpSetup({ script });
  const first = await open(setup);
  await helped(first, server);
  const second = await open({ ...setup, folder: first.folder });
  const asked = await ask(first);
  const callId = asked.clientToolCalls[0]?.callId ?? '';
  const body = { sessionId: 's1', stream: false, toolResults: [{ callId, result: '{"action":"decline"}' }] };
  const ends = await Promise.allSettled([first, second, first, second].map((app) => start(app.client, 'helper', body)));
  assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.equal(callsTo(server).length, 2);
});
