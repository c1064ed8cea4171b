import assert from 'node:assert/strict';
import { forEachDoor, overHttp } from '../../support/app.ts';
import { token } from '../openai/openai-client.ts';
import { respond } from '../openai/openai-wire.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { connected, mcpSetup, rawServer, tool, withTools } from './mcp-world.ts';

const script = [
  { when: { tool: 'weather_look' }, reply: { text: '{{last}}' } },
  { reply: { toolCalls: [{ name: 'weather_look', arguments: { city: 'Ulm' } }] } },
];

forEachDoor(
  'MCP-38 what a person fills in has to fit what was asked for, before its server gets it',
  async (open, t) => {
    let requestedSchema: unknown;
    const server = await rawServer(t, (asked) => {
      if (asked.method !== 'tools/call') return withTools([tool('look')])(asked);
      const { inputResponses } = asked.params;
      return inputResponses === undefined
        ? {
            resultType: 'input_required',
            inputRequests: { who: { method: 'elicitation/create', params: { message: 'Who?', requestedSchema } } },
          }
        : { resultType: 'complete', content: [{ type: 'text', text: JSON.stringify(inputResponses) }] };
    });
    const app = await open(mcpSetup({ script }));
    await connected(app.client, server.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    const calls = () => server.asked.filter(({ method }) => method === 'tools/call').length;
    let sessions = 0;
    const asking = async (schema: unknown) => {
      requestedSchema = schema;
      sessions += 1;
      const sessionId = `s${sessions}`;
      const { clientToolCalls } = await runJson(app.client, 'helper', { message: 'Hi', sessionId });
      const callId = clientToolCalls[0]?.callId ?? '';
      return (answer: unknown) =>
        runJson(app.client, 'helper', { sessionId, toolResults: [{ callId, result: JSON.stringify(answer) }] });
    };
    const accept = (content: unknown) => ({ action: 'accept', content });
    const person = {
      type: 'object',
      properties: {
        name: { type: 'string', minLength: 2 },
        age: { type: 'integer', minimum: 18 },
        seat: { enum: ['w', 'a'] },
      },
      required: ['name'],
    };

    const answer = await asking(person);
    const before = calls();
    for (const [content, field] of [
      [{}, 'name'],
      [null, 'name'],
      [{ name: 'A' }, 'name'],
      [{ name: 'Ada', age: '18' }, 'age'],
      [{ name: 'Ada', age: 17 }, 'age'],
      [{ name: 'Ada', seat: 'x' }, 'seat'],
    ] as const) {
      const { status, code, errors } = await refusal(answer(accept(content)));
      assert.deepEqual([status, code, errors?.[0]?.path], [400, 'validation-failed', 'toolResults[0].result']);
      assert.match(errors?.[0]?.message ?? '', new RegExp(`: ${field} `));
    }
    assert.equal(calls(), before, 'an answer that is refused is not passed on');
    const fits = accept({ name: 'Ada', age: 18, seat: 'w', more: true });
    assert.equal((await answer(fits)).output, JSON.stringify({ who: fits }));

    // What is declined has nothing to fit.
    const declined = { action: 'decline' };
    assert.equal((await (await asking(person))(declined)).output, JSON.stringify({ who: declined }));

    const older = await asking({ ...person, $schema: 'http://json-schema.org/draft-04/schema#' });
    assert.match((await refusal(older(accept({ name: 'A' })))).errors?.[0]?.message ?? '', /: name /);

    // A schema that says nothing here is its server's to check.
    const unread = accept({ name: 7 });
    const unknown = await asking({ ...person, $schema: 'https://example.com/a-dialect-of-its-own' });
    assert.equal((await unknown(unread)).output, JSON.stringify({ who: unread }));
  },
);

overHttp(
  'MCP-38 OAI-4 OAI-31 an answer that does not fit is one of the input, for whoever answers as a response',
  async (open, t) => {
    const question = {
      method: 'elicitation/create',
      params: {
        message: 'Who?',
        requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
      },
    };
    const server = await rawServer(t, (asked) => {
      if (asked.method !== 'tools/call') return withTools([tool('look')])(asked);
      return asked.params['inputResponses'] === undefined
        ? { resultType: 'input_required', inputRequests: { who: question } }
        : { resultType: 'complete', content: [{ type: 'text', text: 'Ada is here.' }] };
    });
    const app = await open({ ...mcpSetup({ script }), host: { AuthToken: token }, token });
    await connected(app.client, server.endpoint, { requiresApproval: false });
    await app.createAgent({ name: 'helper', toolNames: ['weather_look'] });
    const { clientToolCalls } = await runJson(app.client, 'helper', { message: 'Hi', sessionId: 'talk' });
    const fill = (content: unknown) => ({
      type: 'function_call_output',
      call_id: clientToolCalls[0]?.callId ?? '',
      output: JSON.stringify({ action: 'accept', content }),
    });
    const input = [{ role: 'user', content: 'That is me.' }, fill({ name: 7 })];
    const { status, body } = await respond(app, { conversation: 'talk', input });
    assert.deepEqual([status, body.error.param], [400, 'input[1].output']);
    assert.match(body.error.message, /name/);
    assert.doesNotMatch(body.error.message, /toolResults/);
    const fits = await respond(app, { conversation: 'talk', input: [fill({ name: 'Ada' })] });
    assert.deepEqual([fits.status, fits.body.output.at(-1)?.content[0].text], [200, 'Ada is here.']);
  },
);
