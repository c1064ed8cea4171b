import assert from 'node:assert/strict';
import { readDefinition } from '../../../src/features/agents/index.ts';
import { replayBundle } from '../../../src/features/replays/index.ts';
import { forEachDoor } from '../../support/app.ts';
import type { Scenario, SimulatedRequest } from '../../support/providers/scenario.ts';
import { bundleOf } from '../replays/bundle-calls.ts';
import { eventsOf, getRun, readEvents, runJson, runStream } from './run-calls.ts';

const pages = [{ url: 'https://example.com/a', title: 'A page' }];
const model = { provider: 'anthropic', model: 'claude-sonnet-4-5' };

interface Message {
  readonly role: string;
  readonly content: readonly { readonly type: string }[];
}

const messagesOf = ({ body }: SimulatedRequest): readonly Message[] => body['messages'] as readonly Message[];

const typesOf = (message: Message | undefined): string[] => message?.content.map(({ type }) => type) ?? [];

const goesOn = (request: SimulatedRequest): boolean => messagesOf(request).at(-1)?.role === 'assistant';

/** Searches for long: the provider interrupts the answer in the midst of its search. */
const paused: Scenario = {
  answer: {
    text: ['I look it up.'],
    search: { query: 'who won', pages, half: 'call' },
    finish: 'pause',
    usage: { input: 20, output: 4 },
  },
};

const continued: Scenario = {
  answer: {
    search: { query: 'who won', pages, half: 'result' },
    text: [' The home team.'],
    usage: { input: 30, output: 6 },
  },
};

const respond = (request: SimulatedRequest): Scenario => (goesOn(request) ? continued : paused);

forEachDoor('AGENT-41 an answer that the provider pauses in its search continues to its end', async (open) => {
  const fan = { name: 'fan', model, harness: {} };
  const app = await open({ simulator: { respond }, agents: [fan] });
  const { client, simulator } = app;
  const { runId } = await runStream(client, 'fan', { message: 'Who won?', sessionId: 's' });
  assert.equal(simulator.requests.length, 2);
  const [, second] = simulator.requests;
  assert.ok(second !== undefined);
  assert.deepEqual(typesOf(messagesOf(second).at(-1)), ['text', 'server_tool_use'], 'sent back as it was made');

  const run = await getRun(client, runId);
  assert.equal(run.status, 'Completed');
  assert.deepEqual([run.usage?.inputTokens, run.usage?.outputTokens], [50, 10]);
  const events = eventsOf(await readEvents(client, runId));
  assert.equal(events.at(-1)?.['output'], 'I look it up. The home team.');
  assert.deepEqual(
    events.filter(({ type }) => type === 'message.completed').map(({ text, paused }) => [text, paused]),
    [
      ['I look it up.', true],
      [' The home team.', undefined],
    ],
  );
  assert.deepEqual(
    events.filter(({ type }) => type.startsWith('tool.')).map(({ type }) => type),
    ['tool.invoking', 'tool.invoked'],
  );

  const bundle = await bundleOf(client, runId);
  const report = await replayBundle(bundle, new Map([['fan', readDefinition(fan)]]));
  assert.deepEqual(report.divergences, []);

  // The next turn has both halves as one answer.
  const next = await runJson(client, 'fan', { message: 'Sure?', sessionId: 's' });
  assert.equal(next.output, 'I look it up. The home team.');
  assert.deepEqual(typesOf(messagesOf(simulator.requests[2] as SimulatedRequest)[1]), [
    'text',
    'server_tool_use',
    'web_search_tool_result',
    'text',
  ]);
  assert.deepEqual(simulator.objections, []);
});

forEachDoor('AGENT-41 RUN-49 an answer that is paused again and again ends at the limits of the run', async (open) => {
  const endless = { respond: () => paused };
  const fan = { name: 'fan', model, harness: { maximumIterationsPerRequest: 3 } };
  const app = await open({ simulator: endless, agents: [fan], service: { AgentGraph: { MaxTotalTokens: 100 } } });
  const { client, simulator } = app;
  const { runId } = await runStream(client, 'fan', { message: 'Who won?', sessionId: 's' });
  assert.equal(simulator.requests.length, 4, 'rounds: three, and the last one without tools');
  assert.equal(eventsOf(await readEvents(client, runId)).at(-1)?.['finishReason'], 'Iterations');

  // No answer continues that search any more, so the next turn is sent without it.
  simulator.enqueue({ answer: { text: ['Yes.'], usage: { input: 4, output: 1 } } });
  assert.equal((await runJson(client, 'fan', { message: 'Sure?', sessionId: 's' })).output, 'Yes.');
  assert.doesNotMatch(JSON.stringify(simulator.lastRequest().body), /server_tool_use/);
  assert.deepEqual(simulator.objections, []);

  await app.createAgent({ name: 'patient', model, harness: {} });
  const { runId: costly } = await runStream(client, 'patient', { message: 'Who won?' });
  const run = await getRun(client, costly);
  assert.deepEqual([run.status, run.error?.type], ['Failed', 'budget_exceeded']);
});
