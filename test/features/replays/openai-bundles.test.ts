import assert from 'node:assert/strict';
import { officialClient, token } from '../openai/openai-client.ts';
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
