import assert from 'node:assert/strict';
import { officialClient, token } from '../openai/openai-client.ts';
import { tool } from '../runs/run-calls.ts';
import { bundleTextOf, openText } from './bundle-calls.ts';
import { replayTest } from './replayed-file.ts';

replayTest(
  'RUN-53 OAI-13 a bundle has what a client gave as instructions where the model had it, and replays as it was',
  async (open, replays) => {
    const app = await open({
      host: { AuthToken: token },
      token,
      script: [{ reply: { text: 'Salve.' } }],
      agents: [{ name: 'helper', instructions: 'Be brief.' }, { name: 'plain' }],
    });
    const client = officialClient(app);
    for (const model of ['helper', 'plain']) {
      const { response } = await client.chat.completions
        .create({
          model,
          messages: [
            { role: 'system', content: 'Speak Latin.' },
            { role: 'user', content: 'Hello' },
            { role: 'assistant', content: 'Ave.' },
            { role: 'user', content: 'And again' },
          ],
        })
        .withResponse();
      const chat = response.headers.get('x-run-id') ?? '';
      const { id } = await client.responses.create({ model, instructions: 'Speak Greek.', input: 'Hello' });
      const told = await client.responses.create({
        model,
        instructions: 'Speak Latin.',
        input: 'More',
        previous_response_id: id,
      });
      assert.equal(told.output_text, 'Salve.');
      const items = (['user', 'assistant', 'user'] as const).map((role) => ({ role, content: `Said by ${role}` }));
      const conversation = (await client.conversations.create({})).id;
      await client.responses.create({ model, conversation, input: items });
      await client.responses.create({ model, conversation, input: items, instructions: 'Speak Latin.' });
      const runs = (await app.client.runs.list({ query: { agentName: model } })).body;
      assert.equal(runs.length, 5);
      await replays.identical(app, ...runs.map((run) => run.id));

      const bundle = await openText(await bundleTextOf(app.client, chat));
      for await (const { start } of bundle.runs()) {
        assert.deepEqual(
          [start.history, start.input].map((messages) => messages?.map(({ role }) => role)),
          [['User', 'Assistant'], ['User']],
        );
        const own = model === 'helper' ? 'Be brief.\n\n' : '';
        assert.equal(start.compiled?.instructions, `${own}Speak Latin.`);
      }
    }
    // What the client gave stays around a definition that is changed.
    const run = (await app.client.runs.list({ query: { agentName: 'helper' } })).body.at(-2);
    const report = await replays.against(app, run?.id ?? '', {
      name: 'helper',
      model: { provider: 'demo', model: 'demo-1' },
      instructions: 'Be long.',
    });
    assert.match(JSON.stringify(report), /Be long\.\\n\\nSpeak Greek\./);
  },
  'http',
);

replayTest(
  'RUN-53 OAI-13 a call that a client tells of is none of the run, although the session keeps it with the turn, and its id is the same',
  async (open, replays) => {
    const app = await open({
      host: { AuthToken: token },
      token,
      tools: [tool('look', async () => 'seen now')],
      script: [
        { when: { call: 1 }, reply: { toolCalls: [{ name: 'look', arguments: {} }] } },
        { reply: { text: '{{last}}' } },
      ],
      agents: [{ name: 'helper', toolNames: ['look'] }],
    });
    const client = officialClient(app);
    const conversation = (await client.conversations.create({})).id;
    // The id that the scripted model gives its own call, too.
    const callId = 'call_1_0';
    const { output_text } = await client.responses.create({
      model: 'helper',
      conversation,
      input: [
        { role: 'user', content: 'Look' },
        { type: 'function_call', call_id: callId, name: 'look', arguments: '{}' },
        { type: 'function_call_output', call_id: callId, output: 'seen before' },
        { role: 'user', content: 'Look again' },
      ],
    });
    assert.equal(output_text, 'seen now');
    const [run] = (await app.client.runs.list({ query: { agentName: 'helper' } })).body;
    const runId = run?.id ?? '';
    const bundle = await openText(await bundleTextOf(app.client, runId));
    for await (const { start, steps, tools } of bundle.runs()) {
      assert.deepEqual(
        start.history?.map(({ role }) => role),
        ['User', 'Assistant', 'Tool'],
      );
      assert.equal(start.openResults, null);
      assert.deepEqual(
        steps[0]?.answer?.toolCalls.map(({ toolCallId }) => toolCallId),
        [callId],
      );
      assert.deepEqual(
        tools.map(({ toolCallId, result }) => [toolCallId, result]),
        [[callId, 'seen now']],
      );
    }
    await replays.identical(app, runId);
  },
  'http',
);
