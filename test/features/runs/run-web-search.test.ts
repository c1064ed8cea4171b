import assert from 'node:assert/strict';
import { readDefinition } from '../../../src/features/agents/index.ts';
import { replayBundle } from '../../../src/features/replays/index.ts';
import { forEachDurableService } from '../../support/app.ts';
import type { SimulatedRequest } from '../../support/providers/scenario.ts';
import { bundleOf } from '../replays/bundle-calls.ts';
import { eventsOf, readEvents, runJson, runStream, tool } from './run-calls.ts';

const pages = [{ url: 'https://example.com/a', title: 'A page' }];

/** Searches for what it is asked, and then calls the tool `note`. */
const respond = ({ body }: SimulatedRequest) => {
  const said = JSON.stringify(body['messages']);
  if (said.includes('tool_result')) return { answer: { text: ['Noted.'], usage: { input: 9, output: 2 } } };
  return {
    answer: {
      reasoning: ['Look it up.'],
      search: { query: 'who won', pages },
      text: ['The home team.'],
      toolCalls: [{ id: 'toolu_1', name: 'note', arguments: '{"text":"home"}' }],
      usage: { input: 20, output: 4 },
    },
  };
};

const note = tool('note', async () => 'kept', {
  inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
});
const model = { provider: 'anthropic', model: 'claude-sonnet-4-5' };
const fan = { name: 'fan', model, toolNames: ['note'], harness: {} };
const setup = { simulator: { respond }, tools: [note], agents: [fan] };

const offered = ({ body }: SimulatedRequest): boolean => JSON.stringify(body['tools'] ?? []).includes('web_search');

forEachDurableService(
  'AGENT-41 a harness searches the web with its provider: logged, kept and sent back',
  async (open) => {
    const { client, simulator, store } = await open(setup);
    const { runId } = await runStream(client, 'fan', { message: 'Who won?', sessionId: 's' });
    assert.equal(simulator.requests.length, 2);
    assert.ok(simulator.requests.every(offered));

    const events = eventsOf(await readEvents(client, runId));
    const searched = events.filter((event) => event['toolName'] === 'web_search');
    assert.deepEqual(
      searched.map(({ type }) => type),
      ['tool.invoking', 'tool.invoked'],
    );
    assert.equal(searched[0]?.['source'], 'provider:anthropic');
    assert.match(JSON.stringify(searched[0]?.['arguments']), /who won/);
    assert.match(String(searched[1]?.['result']), /https:\/\/example\.com\/a/);
    assert.doesNotMatch(JSON.stringify(events), /encrypted/);
    const { body: calls } = await client.runs.tools({ params: { runId } });
    assert.deepEqual(
      calls.map(({ toolName }) => toolName),
      ['note'],
      'the ledger has what the service executed',
    );

    const sent = JSON.stringify(simulator.lastRequest().body['messages']);
    assert.match(sent, /"thinking".*"server_tool_use".*"web_search_tool_result".*encrypted_content.*"tool_use"/);
    const { body: session } = await client.sessions.get({ params: { sessionId: 's' } });
    const parts = session.messages?.[1]?.contents ?? [];
    assert.deepEqual(
      parts.map(({ type }) => type),
      ['ToolCall', 'ToolResult', 'Text', 'ToolCall'],
    );
    assert.doesNotMatch(JSON.stringify(session.messages), /encrypted|HostedCall/);
    assert.match(await store.text(), /encrypted|HostedCall/);

    await runJson(client, 'fan', { message: 'Sure?', sessionId: 's' });
    assert.match(JSON.stringify(simulator.requests[2]?.body['messages']), /web_search_tool_result/);

    const bundle = await bundleOf(client, runId);
    const report = await replayBundle(bundle, new Map());
    assert.deepEqual(report.divergences, [], 'a search is part of what the model said, not of what it was sent');
    const changed = readDefinition({ ...fan, harness: { disableWebSearch: true } });
    const drifted = await replayBundle(bundle, new Map([['fan', changed]]));
    assert.equal(drifted.result, 'drifted');
    assert.deepEqual((await replayBundle(await bundleOf(client, runId, true), new Map())).divergences, []);
  },
);

forEachDurableService(
  'AGENT-41 no search is offered where it is off, or where somebody has to be asked',
  async (open) => {
    const { client, simulator, createAgent } = await open(setup);
    await createAgent({ name: 'plain', model });
    await createAgent({ name: 'off', model, harness: { disableWebSearch: true } });
    await createAgent({ name: 'asking', model, harness: { disableToolAutoApproval: true } });
    for (const name of ['plain', 'off', 'asking']) {
      await runJson(client, name, { message: 'tool_result' });
      assert.equal(offered(simulator.lastRequest()), false, name);
    }
    const { runId } = await runJson(client, 'fan', { message: 'tool_result' });
    assert.equal(offered(simulator.lastRequest()), true);
    await client.replays.create({ params: { runId }, body: { toolMode: 'NoTools' } });
    assert.equal(offered(simulator.lastRequest()), false, 'a replay without tools searches nothing');
  },
);

forEachDurableService(
  'AGENT-41 a host that authorizes every tool call is offered no search it could not',
  async (open) => {
    const authorizer = { authorize: async () => ({ allowed: true }) };
    const { client, simulator } = await open({ ...setup, authorizer });
    await runJson(client, 'fan', { message: 'tool_result' });
    assert.equal(offered(simulator.lastRequest()), false);
  },
);

forEachDurableService('AGENT-20 AGENT-41 a tool with the name of the search is a collision', async (open) => {
  const { client, createAgent } = await open({ ...setup, tools: [note, tool('web_search', async () => 'x')] });
  const named = { name: 'own', model, toolNames: ['web_search'], harness: {} };
  const { body } = await client.agents.validate({ body: named });
  assert.equal(body.messages[0]?.code, 'tool-name-collision');
  assert.match(JSON.stringify(body.messages), /harness\.disableWebSearch.*toolNames\[0\]/);
  await createAgent({ ...named, harness: { disableWebSearch: true } });
  await createAgent({ ...named, name: 'local', model: { provider: 'local', model: 'any' } });
});
