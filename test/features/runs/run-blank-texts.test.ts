import assert from 'node:assert/strict';
import { forEachDoor } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { runJson, tool } from './run-calls.ts';

const providers = [
  { provider: 'anthropic', model: 'claude-sonnet-4-5' },
  { provider: 'google', model: 'gemini-2.5-flash' },
  { provider: 'openai', model: 'gpt-4.1' },
  { provider: 'openai-responses', model: 'gpt-5-mini' },
];

/** White space, white space of Unicode, and characters that have no width. */
const blanks = ['\n\n', '\u00a0', '\u2003\u3000', '\u200b\u2060\ufeff'];

const conversationOf = ({ body }: SimulatedRequest): string =>
  JSON.stringify(body['messages'] ?? body['contents'] ?? body['input']);

forEachDoor('AGENT-31 a blank text of a model is kept, and leaves the session alive', async (open) => {
  const answers: Scenario[] = [];
  const app = await open({
    simulator: { respond: () => answers.shift() ?? { answer: { text: ['Fine.'] } } },
    tools: [tool('note', async () => ' \n', { inputSchema: { type: 'object' } })],
    agents: providers.map((model) => ({ name: model.provider, model, toolNames: ['note'], instructions: ' \n' })),
  });
  for (const { provider } of providers) {
    for (const [index, blank] of blanks.entries()) {
      const sessionId = `${provider}-${index}`;
      answers.push({ answer: { text: [blank] } });
      answers.push({ answer: { text: [blank], toolCalls: [{ id: 'call_1', name: 'note', arguments: '{}' }] } });
      answers.push({ answer: { text: [blank] } });
      for (const message of ['one', 'two']) await runJson(app.client, provider, { message, sessionId });
      // White space alone is refused as no message; what has no width passes for one.
      const message = blank.trim() === '' ? 'three' : blank;
      assert.equal((await runJson(app.client, provider, { message, sessionId })).output, 'Fine.', provider);
      const { messages } = (await app.client.sessions.get({ params: { sessionId } })).body;
      assert.deepEqual(
        messages
          ?.filter(({ role, contents: [part] }) => role === 'Assistant' && part?.type === 'Text')
          .map(({ contents: [part] }) => part?.type === 'Text' && part.text),
        [blank, blank, blank, 'Fine.'],
        'what was said is kept as it was',
      );
    }
  }
  assert.deepEqual(app.simulator.objections, []);
});

forEachDoor(
  'AGENT-31 calls of equal ids, as some servers number them, continue with another provider',
  async (open) => {
    const app = await open({
      simulator: {},
      tools: [tool('note', async (args) => JSON.stringify(args), { inputSchema: { type: 'object' } })],
      agents: [{ name: 'moving', model: { provider: 'local', model: 'any' }, toolNames: ['note'] }],
    });
    const { client, simulator } = app;
    const call = (n: number): Scenario => ({
      answer: { toolCalls: [{ id: 'functions.note:0', name: 'note', arguments: JSON.stringify({ n }) }] },
    });
    for (const n of [1, 2]) {
      simulator.enqueue(call(n));
      await runJson(client, 'moving', { message: `note ${n}`, sessionId: 's' });
    }
    const moved = { name: 'moving', model: { provider: 'anthropic', model: 'any' }, toolNames: ['note'] };
    await client.agents.save({ params: { name: 'moving' }, body: moved });
    await runJson(client, 'moving', { message: 'And?', sessionId: 's' });
    assert.deepEqual(simulator.objections, []);
    const sent = conversationOf(simulator.lastRequest());
    for (const id of ['functions_note_0', 'functions_note_0_2']) assert.equal(sent.split(`"${id}"`).length, 3, id);
  },
);
