import assert from 'node:assert/strict';
import { forEachDurableHttpService } from '../../support/app.ts';
import { result, rpc } from '../a2a/a2a-world.ts';
import { resultOf, stateless } from '../mcp-endpoint/mcp-world.ts';
import { messages, receiver, save, webhookSetup } from '../webhooks/webhook-world.ts';
import { callsTools, collect, Gate, getRun, listRuns, refusal, stream, tool } from './run-calls.ts';

const incomplete = ['recording-incomplete'];

forEachDurableHttpService(
  'RUN-28 WEBHOOK-16 what lists, compares, publishes, logs and replays a run says that its record is incomplete',
  async (open, t) => {
    const gates = [new Gate(), new Gate()];
    let made = 0;
    const waits = tool('wait', async (_args, { signal }) => {
      const gate = gates[made];
      made += 1;
      await gate?.pass(signal);
      return `result ${made}`;
    });
    const app = await open(
      webhookSetup(
        {},
        { tools: [waits], script: callsTools('wait', 'wait'), agents: [{ name: 'helper', toolNames: ['wait'] }] },
      ),
    );
    const server = await receiver(t);
    await save(app.client, server.url);
    const { runId, frames } = await stream(app.client, 'helper', 'Hi');
    await gates[0]?.reached;
    const mend = await app.store.refuse('run events');
    gates[0]?.open();
    await gates[1]?.reached;
    await mend();
    gates[1]?.open();
    assert.deepEqual(
      (await collect(frames)).slice(-2).map(({ event }) => event),
      ['warning', 'run.completed'],
    );
    assert.deepEqual((await getRun(app.client, runId)).warnings, incomplete);
    assert.deepEqual(
      (await listRuns(app.client)).map(({ warnings }) => warnings),
      [incomplete],
    );
    assert.deepEqual((await app.client.runs.tree({ params: { runId } })).body[0]?.warnings, incomplete);
    const { body: compared } = await app.client.runs.compare({ params: { a: runId, b: runId } });
    assert.deepEqual([compared.left.warnings, compared.right.warnings], [incomplete, incomplete]);
    const line = app.log.find(({ message, fields }) => message === 'A run completed' && fields['runId'] === runId);
    assert.deepEqual(line?.fields['warnings'], incomplete);
    const [told] = await messages(server, 1);
    assert.deepEqual(
      [told?.type, told?.data['status'], told?.data['warnings']],
      ['run.completed', 'Completed', incomplete],
    );
    // The calls that no one recorded cannot be answered again.
    const replay = await refusal(app.client.replays.create({ params: { runId }, body: {} }));
    assert.equal(replay.code, 'replay-result-missing');
  },
);

forEachDurableHttpService(
  'RUN-28 answers of the other protocols say that the record of their run is incomplete',
  async (open) => {
    const offered = ['helper'];
    const app = await open({
      agents: [{ name: 'helper', description: 'Answers questions.' }],
      script: [{ reply: { text: 'Done.' } }],
      host: { A2A: { Agents: offered }, McpServer: { Agents: offered } },
    });
    const mend = await app.store.refuse('model calls');
    const post = (path: string, body: object) =>
      fetch(`${app.url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'helper', ...body }),
      });
    const chat = await post('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] });
    assert.deepEqual([chat.status, chat.headers.get('x-acp-warning')], [200, 'recording-incomplete']);
    const response = await post('/v1/responses', { input: 'Hi' });
    assert.deepEqual([response.status, response.headers.get('x-acp-warning')], [200, 'recording-incomplete']);
    const { id } = (await response.json()) as { id: string };
    // What the store refuses as one unit, it is offered in parts a moment later.
    await app.clock.advance(1000);
    const read = await fetch(`${app.url}/v1/responses/${id}`);
    assert.deepEqual([read.status, read.headers.get('x-acp-warning')], [200, 'recording-incomplete']);
    const message = { messageId: 'one', role: 'ROLE_USER', parts: [{ text: 'Hi' }] };
    const { task } = await result(app, 'SendMessage', { message });
    assert.equal(task.metadata['acp.warnings'], 'recording-incomplete');
    await app.clock.advance(1000);
    const { body } = await rpc(app, 'GetTask', { id: task.id });
    assert.equal(body.result.metadata['acp.warnings'], 'recording-incomplete');
    const called = resultOf(await stateless(app, 'tools/call', { name: 'helper', arguments: { message: 'Hi' } }));
    assert.deepEqual((called as { structuredContent: object }).structuredContent['warnings' as never], incomplete);
    await mend();
    const whole = await post('/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] });
    assert.equal(whole.headers.get('x-acp-warning'), null);
  },
);
