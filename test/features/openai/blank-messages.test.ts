import assert from 'node:assert/strict';
import { forEachHttpService } from '../../support/app.ts';
import { says } from '../runs/chat-requests.ts';
import { helperSetup } from './openai-client.ts';
import { chat, respond } from './openai-wire.ts';

const blanks = ['\n\n', '\u00a0', '\u200b'];

for (const model of [
  { provider: 'anthropic', model: 'claude-sonnet-4-5' },
  { provider: 'google', model: 'gemini-2.5-flash' },
])
  forEachHttpService(
    `OAI-22 AGENT-31 blank messages of a caller reach ${model.provider} as it takes them`,
    async (open) => {
      const agent = { name: 'helper', model, instructions: ' ' };
      const app = await open(helperSetup({ simulator: { respond: () => says('Fine.') }, agents: [agent] }));
      const user = (content: string) => ({ role: 'user', content });
      const assistant = (content: string) => ({ role: 'assistant', content });
      for (const blank of blanks) {
        const system = { role: 'system', content: blank };
        for (const messages of [
          [system, user('Hi'), assistant(blank), user('And?')],
          [assistant('Welcome.'), user('Hi')],
          [user('Hi'), assistant('One.'), assistant('Two.'), user('And?')],
          [user(blank), assistant('What?'), user('Hi')],
          // White space alone is refused as the last message; what has no width passes for one.
          ...(blank.trim() === '' ? [] : [[user('Hi'), assistant('What?'), user(blank)]]),
        ]) {
          const answer = await chat(app, { messages });
          assert.deepEqual([answer.status, answer.body?.choices?.[0]?.message.content], [200, 'Fine.'], answer.text);
          const response = await respond(app, { input: messages, instructions: blank });
          assert.equal(response.status, 200, response.text);
        }
      }
      assert.deepEqual(app.simulator.objections, []);
    },
  );
