import assert from 'node:assert/strict';
import type { Client } from '../../../src/client/client.ts';
import type { Json } from '../../../src/contract/schema.ts';
import { agentStore } from '../../../src/features/agents/agents.store.ts';
import { type AgentSetup, forEachDurableService } from '../../support/app.ts';
import { lastOf, says } from './chat-requests.ts';
import { assertWholeLog, getRun, listRuns, readEvents, refusal, runJson, runStream, start, tool } from './run-calls.ts';

const withSchema = (name: string, members: Record<string, Json>): AgentSetup => ({
  name,
  model: {
    provider: 'local',
    model: 'any',
    responseFormat: { kind: 'JsonSchema', schema: { type: 'object', ...members }, schemaName: 'answer' },
  },
});

const create = (client: Client, agent: AgentSetup) => client.agents.create({ body: agent as never });

forEachDurableService('AGENT-30 a schema that would hold up everybody is refused when it is saved', async (open) => {
  const { client } = await open({ simulator: {} });
  const cases: readonly [members: Record<string, Json>, path: string, message: RegExp][] = [
    [{ properties: { a: { pattern: '^(?=a)b' } } }, 'properties.a.pattern', /RE2 .*no lookahead/],
    [{ patternProperties: { '(a)\\1': true } }, 'patternProperties', /RE2 .*backreferences/],
    [
      { properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: { allOf: [{ $ref: '#/$defs/n' }] } } },
      '$defs.n',
      /contains itself/,
    ],
    [
      {
        properties: { next: { type: 'array', items: { $ref: '#/$defs/n' } } },
        $defs: { n: { items: { $ref: '#/$defs/n' } } },
      },
      '$defs.n',
      /contains itself/,
    ],
  ];
  for (const [members, path, message] of cases) {
    const problem = await refusal(create(client, withSchema('strict', members)));
    assert.equal(problem.status, 400);
    const found = problem.errors?.find((error) => error.path === `model.responseFormat.schema.${path}`);
    assert.match(found?.message ?? JSON.stringify(problem), message);
  }
  // What leads to the root has the path of the schema.
  const root = await refusal(create(client, withSchema('strict', { allOf: [{ $ref: '#' }] })));
  assert.match(JSON.stringify(root.errors), /model\.responseFormat\.schema.* contains itself/);
});

forEachDurableService('RUN-68 a pattern that a backtracking engine cannot end is checked at once', async (open) => {
  const { client } = await open({
    simulator: { respond: () => says(JSON.stringify({ a: `${'a'.repeat(5_000)}!` })) },
    service: { StructuredResponse: { Enabled: true } },
    agents: [withSchema('strict', { properties: { a: { type: 'string', pattern: '^(a+)+$' } } })],
  });
  const problem = await refusal(runJson(client, 'strict', 'Hi'));
  assert.deepEqual([problem.status, problem.code], [502, 'structured-response-invalid']);
});

forEachDurableService(
  'RUN-68 an answer nested a hundred thousand times is no answer, and no error of the service',
  async (open) => {
    const { client } = await open({
      simulator: { respond: () => says(`{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`) },
      service: { StructuredResponse: { Enabled: true } },
      agents: [withSchema('strict', {})],
    });
    const problem = await refusal(runJson(client, 'strict', 'Hi'));
    assert.deepEqual([problem.status, problem.code], [502, 'structured-response-invalid']);
  },
);

forEachDurableService(
  'a definition that was stored with such a pattern fails its runs, with the place of it',
  async (open) => {
    const app = await open({
      simulator: {},
      agents: [withSchema('strict', { properties: { a: { pattern: '^abc$' } } })],
    });
    // As a version of the service stored it that did not refuse such a pattern.
    const agents = app.store.open().stores(agentStore);
    const { content } = (await agents.find('default', 'strict')) ?? assert.fail('the agent is stored');
    const older = JSON.parse(JSON.stringify(content).replace('^abc$', '(?=a)b')) as typeof content;
    await agents.append('default', older, { expectedVersion: null, updatedAt: 1, updatedBy: null });
    const problem = await refusal(start(app.client, 'strict', { message: 'Hi', stream: false }));
    assert.ok(problem.status < 500, JSON.stringify(problem));
    assert.match(JSON.stringify(problem), /model\.responseFormat\.schema\.properties\.a\.pattern/);
  },
);

forEachDurableService('TOOL-13 arguments nested a hundred thousand times are an error of the call', async (open) => {
  const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  const { client } = await open({
    simulator: {
      respond: (request) =>
        lastOf(request, 'tool') === ''
          ? { answer: { toolCalls: [{ id: 'c-1', name: 'look', arguments: deep }] } }
          : says(lastOf(request, 'tool')),
    },
    tools: [tool('look', async () => 'seen', { inputSchema: { type: 'object' } })],
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' }, toolNames: ['look'] }],
  });
  const { runId, output } = await runJson(client, 'helper', { message: 'Hi', sessionId: 's-1' });
  assert.match(output ?? '', /nested too deeply/);
  assert.equal((await getRun(client, runId)).status, 'Completed');
  assertWholeLog(await readEvents(client, runId));
  // The session goes on with what the model wrote.
  const { events } = await runStream(client, 'helper', { message: 'And now?', sessionId: 's-1' });
  assert.equal(events.at(-1)?.type, 'run.completed');
  assert.equal((await listRuns(client)).length, 2);
});
