import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startServer } from '../../providers/http/loopback-server.ts';
import { forEachDurableService, forEachService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { callsTools, getRun, readEvents, refusal, runStream, tool } from './run-calls.ts';

const said = 'a\u0000b\uD800c';

forEachService('RUN-28 a tool that answers with U+0000 has its record, and the run its complete log', async (open) => {
  const app = await open({
    tools: [tool('send', async () => said, { effect: 'External' })],
    script: callsTools('send'),
    agents: [{ name: 'helper', toolNames: ['send'] }],
  });
  const { runId, frames } = await runStream(app.client, 'helper', { message: said, sessionId: 's' });
  assert.deepEqual(await readEvents(app.client, runId), frames);
  assert.equal((await getRun(app.client, runId)).status, 'Completed');
  const { body: records } = await app.client.runs.tools({ params: { runId } });
  assert.deepEqual(
    records.map(({ toolName, result, succeeded }) => [toolName, result, succeeded]),
    [['send', 'a\uFFFDb\uFFFDc', true]],
  );
  const failed = app.log.filter(({ message }) => message === 'Recording of a run failed and has ended');
  assert.deepEqual(failed, []);
});

forEachService('a filter or an id with U+0000 has the same answer on every store', async (open) => {
  const app = await open({ agents: [{ name: 'helper' }] });
  const { client } = app;
  assert.deepEqual((await client.runs.list({ query: { agentName: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { label: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { errorType: said } })).body, []);
  assert.deepEqual((await client.runs.list({ query: { userId: said } })).body, []);
  assert.deepEqual((await client.sessions.list({ query: { agentName: said } })).body, []);
  assert.equal((await refusal(client.agents.get({ params: { name: 'a\u0000b' } }))).code, 'agent-not-found');
});

const declared = (url: string) => ({
  name: 'fetch',
  description: 'Fetches.',
  effect: 'External',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  request: { method: 'GET', url },
});

forEachDurableService(
  'what an agent that was called, a declared tool and a file of an agent say with U+0000 is kept, and the record is whole',
  async (open, t) => {
    const server = await startServer((_request, response) =>
      response.setHeader('content-type', 'text/plain').end('a\0b'),
    );
    t.after(() => server.close());
    const folder = await mkdtemp(join(tmpdir(), 'acp-tools-'));
    t.after(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'fetch.yaml'), stringify(declared(server.url)));
    const app = await open({
      service: { Egress: { AllowPrivateNetworkTargets: true } },
      host: { Tools: [folder] },
      script: [
        { when: { message: 'inner' }, reply: { text: 'a\0b' } },
        {
          when: { call: 1 },
          reply: {
            toolCalls: [
              { name: 'call_inner', arguments: { message: 'inner' } },
              { name: 'fetch', arguments: {} },
              { name: 'file_write', arguments: { path: 'notes.txt', content: 'a\0b' } },
              { name: 'file_read', arguments: { path: 'notes.txt' } },
            ],
          },
        },
        { reply: { text: '{{last}}' } },
      ],
      agents: [
        { name: 'inner' },
        {
          name: 'helper',
          toolNames: ['fetch'],
          callableAgentNames: ['inner'],
          memory: { enableFileMemory: true },
        },
      ],
    });
    const { runId, frames } = await runStream(app.client, 'helper', { message: 'Hi', sessionId: 's' });
    assert.deepEqual(await readEvents(app.client, runId), frames);
    const run = await getRun(app.client, runId);
    assert.deepEqual([run.status, run.warnings], ['Completed', undefined]);
    const { body: records } = await app.client.runs.tools({ params: { runId } });
    assert.deepEqual(
      records.map(({ toolName, succeeded }) => [toolName, succeeded]),
      ['call_inner', 'fetch', 'file_write', 'file_read'].map((name) => [name, true]),
    );
    for (const { toolName, result } of records)
      if (toolName !== 'file_write') assert.match(result ?? '', /a\uFFFDb/, toolName);
  },
);

forEachDurableService(
  'AUDIT-5 names with U+0000 are stored as answers show them, and the audit trail stays complete',
  async (open) => {
    const app = await open();
    const { body: key } = await app.client.keys.create({
      body: { name: said, role: 'Admin', scopes: ['AgentsAdmin'] },
    });
    assert.equal(key.record.name, 'a\uFFFDb\uFFFDc');
    const named = await app.clientFor(key.plaintextKey);
    await named.agents.create({
      body: { name: 'made', description: said, model: { provider: 'demo', model: 'demo-1' } },
    });
    const entries = await trail(app);
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['apikey.create', 'agent.create'],
    );
  },
);
