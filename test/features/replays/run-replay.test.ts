import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client, ClientInput } from '../../../src/client/client.ts';
import { newId } from '../../../src/core/ids.ts';
import type { replayOperations } from '../../../src/features/replays/replays.operations.ts';
import { runStore } from '../../../src/features/runs/runs.store.ts';
import { forEachDurableService } from '../../support/app.ts';
import { trail } from '../../support/audit-chain.ts';
import { calls, openApprovals } from '../approvals/approval-world.ts';
import { swept } from '../retention/retention-world.ts';
import { opensRun } from '../runs/other-process.ts';
import {
  callsTools,
  followToEnd,
  Gate,
  getRun,
  listRuns,
  refusal,
  runJson,
  stream,
  tool,
  typesOf,
  waitingSetup,
} from '../runs/run-calls.ts';

type Body = ClientInput<(typeof replayOperations)['create']>['body'];

const unknownId = '0190b6a2-0000-7000-8000-000000000000';

const replay = async (client: Client, runId: string, body: Body = {}) =>
  (await client.replays.create({ params: { runId }, body })).body;

const replayRefusal = (client: Client, runId: string, body: Body = {}) =>
  refusal(client.replays.create({ params: { runId }, body }));

/** A tool whose every call gives the next number. */
const counter = () => {
  let calls = 0;
  return {
    get calls() {
      return calls;
    },
    tool: tool('count', async () => {
      calls += 1;
      return `number ${calls}`;
    }),
  };
};

forEachDurableService('RUN-52 RUN-53 a replay answers calls from the recording and executes nothing', async (open) => {
  const counted = counter();
  const { client } = await open({
    tools: [counted.tool],
    script: callsTools('count', 'count'),
    agents: [{ name: 'helper', toolNames: ['count'] }],
  });
  const source = await runJson(client, 'helper', 'Go');
  const answer = await replay(client, source.runId);
  assert.equal(counted.calls, 2);
  assert.deepEqual(
    [answer.sourceRunId, answer.toolMode, answer.agentVersion, answer.status, answer.output],
    [source.runId, 'ReplayTools', 1, 'Completed', source.output],
  );
  assert.deepEqual([answer.modelProvider, answer.modelId], ['demo', 'demo-1']);
  assert.equal(answer.compareLocation, `/api/runs/${source.runId}/compare/${answer.runId}`);
  const run = await getRun(client, answer.runId);
  assert.deepEqual([run.replayOfRunId, run.sessionId, run.kind], [source.runId, null, 'Agent']);
  const events = await followToEnd(client, answer.runId);
  assert.equal(events[0]?.['replayOfRunId'], source.runId);
  assert.deepEqual(
    events.filter(({ type }) => type === 'tool.invoked').map((event) => event['result']),
    ['number 1', 'number 2'],
  );
  const { body: records } = await client.runs.tools({ params: { runId: answer.runId } });
  assert.deepEqual(
    records.map(({ toolName, result, succeeded, durationMs }) => [toolName, result, succeeded, durationMs]),
    [
      ['count', 'number 1', true, 0],
      ['count', 'number 2', true, 0],
    ],
  );
  const { output } = await replay(client, answer.runId);
  assert.equal(output, source.output, 'a replay can be replayed');
});

forEachDurableService(
  'RUN-53 arguments are compared as JSON, and a recorded failure is a failure again',
  async (open) => {
    let executed = 0;
    const pick = tool(
      'pick',
      async () => {
        executed += 1;
        throw new Error('no');
      },
      { inputSchema: { type: 'object' } },
    );
    const call = (args: object) => ({ name: 'pick', arguments: args });
    const { client } = await open({
      tools: [pick],
      script: [
        { when: { tool: 'pick' }, reply: { text: 'After: {{last}}' } },
        { when: { model: 'other' }, reply: { toolCalls: [call({ b: 2, a: 1 })] } },
        { reply: { toolCalls: [call({ a: 1, b: 2 })] } },
      ],
      agents: [{ name: 'helper', toolNames: ['pick'] }],
    });
    const source = await runJson(client, 'helper', 'Go');
    const answer = await replay(client, source.runId, { modelId: 'other' });
    assert.equal(executed, 1);
    assert.deepEqual([answer.modelId, answer.output], ['other', source.output]);
    assert.ok(typesOf(await followToEnd(client, answer.runId)).includes('tool.failed'));
  },
);

forEachDurableService('RUN-53 a call without a whole recorded result ends the replay with 422', async (open) => {
  const { client } = await open({
    service: { RunRecording: { MaxPayloadLength: 20 } },
    tools: [tool('long', async () => 'x'.repeat(50)), tool('short', async () => 'y')],
    script: [
      { when: { model: 'more', tool: 'short' }, reply: { toolCalls: [{ name: 'short', arguments: {} }] } },
      { when: { tool: 'long' }, reply: { text: 'Done.' } },
      { when: { tool: 'short' }, reply: { text: 'Done.' } },
      { when: { message: 'long' }, reply: { toolCalls: [{ name: 'long', arguments: {} }] } },
      { reply: { toolCalls: [{ name: 'short', arguments: {} }] } },
    ],
    agents: [{ name: 'helper', toolNames: ['long', 'short'] }],
  });
  const cut = await runJson(client, 'helper', 'long');
  const first = await replayRefusal(client, cut.runId);
  assert.deepEqual(
    [first.status, first.code, first.errorType],
    [422, 'replay-result-missing', 'replay_result_missing'],
  );
  assert.match(first.detail, /"long"/);
  const whole = await runJson(client, 'helper', 'short');
  const second = await replayRefusal(client, whole.runId, { modelId: 'more' });
  assert.equal(second.code, 'replay-result-missing', 'the second call was never recorded');
  const [run] = await listRuns(client);
  assert.deepEqual([run?.replayOfRunId, run?.status, run?.error?.class], [whole.runId, 'Failed', 'ToolError']);
});

forEachDurableService('RUN-53 payloads that were not recorded do not serve a replay', async (open) => {
  const { client } = await open({
    service: { RunRecording: { RecordToolPayloads: false } },
    tools: [counter().tool],
    script: callsTools('count'),
    agents: [{ name: 'helper', toolNames: ['count'] }],
  });
  const { runId } = await runJson(client, 'helper', 'Go');
  assert.equal((await replayRefusal(client, runId)).code, 'replay-result-missing');
});

forEachDurableService('RUN-53 child agents count as tools', async (open) => {
  const app = await open({
    script: [
      { when: { model: 'boss', tool: 'call_child' }, reply: { text: 'It said: {{last}}' } },
      { when: { model: 'boss' }, reply: { toolCalls: [{ name: 'call_child', arguments: { message: 'Well?' } }] } },
      { reply: { text: 'Yes.' } },
    ],
    agents: [
      { name: 'child' },
      { name: 'boss', model: { provider: 'demo', model: 'boss' }, callableAgentNames: ['child'] },
    ],
  });
  const source = await runJson(app.client, 'boss', 'Go');
  const answer = await replay(app.client, source.runId);
  assert.equal(answer.output, 'It said: Yes.');
  assert.deepEqual(await listRuns(app.client, { parentRunId: answer.runId }), []);
  const live = await replay(app.client, source.runId, { toolMode: 'LiveTools' });
  assert.equal((await listRuns(app.client, { parentRunId: live.runId })).length, 1);
});

forEachDurableService('RUN-53 NoTools gives the model no tools', async (open) => {
  const app = await open({
    simulator: {},
    tools: [counter().tool],
    agents: [{ name: 'helper', model: { provider: 'local', model: 'any' }, toolNames: ['count'] }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Go');
  assert.ok('tools' in app.simulator.lastRequest().body);
  const answer = await replay(app.client, runId, { toolMode: 'NoTools' });
  assert.equal(answer.toolMode, 'NoTools');
  assert.ok(!('tools' in app.simulator.lastRequest().body));
});

forEachDurableService('RUN-54 LiveTools executes tools, needs Admin, and is audited', async (open) => {
  const counted = counter();
  const app = await open({
    tools: [counted.tool],
    script: callsTools('count'),
    agents: [{ name: 'helper', toolNames: ['count'] }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Go');
  const { body: key } = await app.client.keys.create({
    body: { name: 'operator', role: 'Operator', scopes: ['RunsRead', 'RunsWrite'] },
  });
  const operator = await app.clientFor(key.plaintextKey);
  const refused = await replayRefusal(operator, runId, { toolMode: 'LiveTools' });
  assert.deepEqual([refused.status, refused.code, refused.requiredRole], [403, 'insufficient-role', 'Admin']);
  assert.equal(counted.calls, 1);
  const live = await replay(app.client, runId, { toolMode: 'LiveTools' });
  assert.equal(counted.calls, 2);
  assert.equal(live.output, 'Done: number 2');
  const entries = (await trail(app)).filter(({ action }) => action === 'run.replay-live');
  assert.deepEqual(
    entries.map(({ entity }) => entity),
    [`run:${runId}`],
  );
  assert.match(JSON.stringify(entries[0]?.after), new RegExp(live.runId));
  const own = await replay(operator, runId);
  assert.deepEqual((await getRun(app.client, own.runId)).labels, { apiKey: 'operator' }, 'RUN-36 the caller counts');
});

forEachDurableService('AUDIT-19 AUDIT-20 a replay with live tools runs without its entry', async (open) => {
  const counted = counter();
  const app = await open({
    tools: [counted.tool],
    script: callsTools('count'),
    agents: [{ name: 'helper', toolNames: ['count'] }],
  });
  const { runId } = await runJson(app.client, 'helper', 'Go');
  await app.store.refuse('audit entries');
  assert.equal((await replay(app.client, runId, { toolMode: 'LiveTools' })).output, 'Done: number 2');
  assert.ok(app.log.some(({ level, fields }) => level === 'error' && fields['action'] === 'run.replay-live'));
});

forEachDurableService('RUN-55 RUN-50 RUN-40 what cannot be replayed is refused before any row', async (open) => {
  const gate = new Gate();
  const app = await open({ ...waitingSetup(gate) });
  const { client } = app;
  const { runId } = await runJson(client, 'helper', 'Hi');
  const count = async (): Promise<number> => (await listRuns(client)).length;
  const unknown = await replayRefusal(client, unknownId);
  assert.deepEqual([unknown.status, unknown.code], [404, 'run-not-found']);
  const version = await replayRefusal(client, runId, { agentVersion: 7 });
  assert.deepEqual([version.status, version.code, version.missingVersion], [404, 'version-not-found', 7]);
  const open1 = await stream(client, 'helper', 'wait');
  const frames = open1.frames[Symbol.asyncIterator]();
  await gate.reached;
  const early = await replayRefusal(client, open1.runId);
  assert.deepEqual([early.status, early.code], [409, 'run-not-finished']);
  gate.open();
  for (let next = await frames.next(); next.done !== true; ) next = await frames.next();
  assert.equal(await count(), 2);
  await client.retention.save({ params: { target: 'RunInputs' }, body: { maxRows: 1 } });
  await swept(app);
  const gone = await replayRefusal(client, runId);
  assert.deepEqual([gone.status, gone.code], [404, 'run-input-not-recorded']);
  await client.agents.remove({ params: { name: 'helper' } });
  const agent = await replayRefusal(client, open1.runId);
  assert.deepEqual([agent.status, agent.code], [404, 'agent-not-found']);
  assert.equal(await count(), 2);
});

forEachDurableService(
  'RUN-54 TOOL-36 APPR-6 client-side tools and approvals refuse a replay before any row',
  async (open) => {
    const { execute: _none, ...camera } = tool('camera', async () => '', { runsOnClient: true });
    const app = await open({
      tools: [camera, tool('pay', async () => 'paid', { requiresApproval: true }), tool('look', async () => 'seen')],
      agents: [
        { name: 'client', toolNames: ['look', 'camera'] },
        { name: 'payer', toolNames: ['look', 'pay'] },
        { name: 'asking', toolNames: ['look'], harness: { disableToolAutoApproval: true } },
      ],
    });
    const sources = new Map<string, string>();
    for (const name of ['client', 'payer', 'asking']) sources.set(name, (await runJson(app.client, name, 'Hi')).runId);
    const refused = async (name: string, toolMode: 'ReplayTools' | 'NoTools' | 'LiveTools') => {
      const before = (await listRuns(app.client)).length;
      const problem = await replayRefusal(app.client, sources.get(name) ?? '', { toolMode });
      assert.equal((await listRuns(app.client)).length, before);
      return [problem.status, problem.code, /tool "(\w+)"/i.exec(problem.detail ?? '')?.[1]];
    };
    for (const mode of ['ReplayTools', 'NoTools', 'LiveTools'] as const)
      assert.deepEqual(await refused('client', mode), [409, 'replay-client-tools', 'camera'], mode);
    assert.deepEqual(await refused('payer', 'LiveTools'), [409, 'replay-needs-approval', 'pay']);
    assert.equal((await refused('asking', 'LiveTools'))[1], 'replay-needs-approval');
    for (const mode of ['ReplayTools', 'NoTools'] as const)
      assert.equal(
        (await replay(app.client, sources.get('payer') ?? '', { toolMode: mode })).status,
        'Completed',
        'APPR-6',
      );
    assert.deepEqual(
      (await trail(app)).filter(({ action }) => action === 'run.replay-live'),
      [],
      'a refused replay is not audited as one',
    );
  },
);

forEachDurableService('RUN-55 what is no turn of an agent, or has no versions, cannot be replayed', async (open, t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'code.yaml'), 'name: coded\nmodel: { provider: demo, model: demo-1 }\n');
  const app = await openApprovals(open, { host: { Agents: [join(folder, 'code.yaml')] } });
  const { client } = app;
  const refused = async (runId: string, body: Body = {}) => {
    const before = (await listRuns(app.client)).length;
    const problem = await replayRefusal(client, runId, body);
    assert.equal((await listRuns(app.client)).length, before);
    return { status: problem.status, code: problem.code, detail: problem.detail ?? '' };
  };
  const coded = await runJson(client, 'coded', 'Hi');
  const { status, code, detail } = await refused(coded.runId, { agentVersion: 1 });
  assert.deepEqual([status, code], [400, 'replay-not-supported']);
  assert.match(detail, /"coded" is defined in code and has no versions/);
  assert.equal((await replay(client, coded.runId)).status, 'Completed');
  const first = await runJson(client, 'helper', { message: calls(['pay']), sessionId: 's' });
  const approvals = [{ requestId: first.approvals[0]?.requestId ?? '', approved: true }];
  const second = await runJson(client, 'helper', { sessionId: 's', approvals });
  const answered = await refused(second.runId);
  assert.deepEqual([answered.status, answered.code], [400, 'replay-not-supported']);
  assert.match(answered.detail, /has no input of its own/);
  const other = app.store.open();
  const workflow = newId();
  await opensRun(other, workflow, { agentName: 'coded', kind: 'Workflow' as never });
  const runs = other.stores(runStore);
  const row = (await runs.get('default', workflow)) ?? assert.fail('the run is stored');
  await runs.closeFrom(row, 'Running', { status: 'Completed', completed_at: 1 });
  assert.equal((await refused(workflow)).code, 'replay-not-supported');
});

forEachDurableService(
  'RUN-52 RUN-55 version and model of a replay can be chosen; what does not compile is recorded',
  async (open) => {
    const app = await open({
      simulator: {},
      agents: [{ name: 'helper', model: { provider: 'local', model: 'any' }, instructions: 'Be first.' }],
    });
    const { client } = app;
    const { runId } = await runJson(client, 'helper', 'Hi');
    const second = { name: 'helper', model: { provider: 'local', model: 'any' }, instructions: 'Be second.' };
    await client.agents.save({ params: { name: 'helper' }, body: second });
    const system = () => JSON.stringify(app.simulator.lastRequest().body['messages']);
    assert.equal((await replay(client, runId)).agentVersion, 2);
    assert.match(system(), /Be second/);
    const first = await replay(client, runId, { agentVersion: 1, modelId: 'another' });
    assert.deepEqual([first.agentVersion, first.modelId], [1, 'another']);
    assert.match(system(), /Be first/);
    assert.equal(app.simulator.lastRequest().body['model'], 'another');
    const broken = await replayRefusal(client, runId, { modelProvider: 'nowhere' });
    assert.deepEqual([broken.status, broken.code], [400, 'agent-not-compilable']);
    assert.match(
      broken.detail ?? '',
      /the modelProvider of the request: .*"nowhere" is not configured; configured: .*local/,
    );
    const [run] = await listRuns(client);
    assert.deepEqual([run?.replayOfRunId, run?.error?.class], [runId, 'CompilationFailed']);
  },
);

forEachDurableService(
  'RUN-52 only the input of the turn is replayed, with its parameters, culture and documents',
  async (open) => {
    const app = await open({
      simulator: {},
      agents: [
        {
          name: 'helper',
          model: { provider: 'local', model: 'any' },
          instructions: 'Speak to {{who}}.',
          instructionsByCulture: { de: 'Sprich mit {{who}}.' },
          parameters: [{ name: 'who', kind: 'Text', required: true }],
        },
      ],
    });
    const turn = { sessionId: 's', parameters: { who: 'Ada' }, culture: 'de' };
    await runJson(app.client, 'helper', { ...turn, message: 'first words' });
    const documents = [{ name: 'note.txt', content: 'the note' }];
    const { runId } = await runJson(app.client, 'helper', { ...turn, message: 'second words', documents });
    const before = app.simulator.lastRequest().body['messages'] as unknown[];
    await replay(app.client, runId);
    const after = app.simulator.lastRequest().body['messages'] as unknown[];
    assert.match(JSON.stringify(after), /Sprich mit Ada/);
    assert.deepEqual(after, [before[0], before.at(-1)]);
  },
);

forEachDurableService('RUN-39 a replay asks for a start with the source run, before any row', async (open) => {
  const asked: unknown[] = [];
  let allowed = true;
  const app = await open({
    agents: [{ name: 'helper' }],
    module: {
      runAuthorization: {
        async authorize(request) {
          asked.push([request.action, request.runId, request.agentName]);
          return { allowed: request.action !== 'Start' || allowed };
        },
      },
    },
  });
  const { runId } = await runJson(app.client, 'helper', 'Hi');
  allowed = false;
  const refused = await replayRefusal(app.client, runId);
  assert.deepEqual([refused.status, refused.code], [403, 'run-not-allowed']);
  assert.deepEqual(asked.at(-1), ['Start', runId, 'helper']);
  assert.equal((await listRuns(app.client)).length, 1);
});

forEachDurableService('RUN-28 RUN-79 replays need recording, and a stopping service starts none', async (open) => {
  const off = await open({ service: { RunRecording: { Enabled: false } } });
  const disabled = await replayRefusal(off.client, unknownId);
  assert.deepEqual([disabled.status, disabled.code], [501, 'run-recording-disabled']);
  await off.close();
  const on = await open({ agents: [{ name: 'helper' }] });
  const { runId } = await runJson(on.client, 'helper', 'Hi');
  await on.app.drain();
  const draining = await replayRefusal(on.client, runId);
  assert.deepEqual([draining.status, draining.code], [503, 'draining']);
});
