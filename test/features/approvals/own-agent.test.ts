import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import { forEachService } from '../../support/app.ts';
import { getRun, refusal, runJson, start } from '../runs/run-calls.ts';
import { calls, openApprovals, type Wanted } from './approval-world.ts';

const model = { provider: 'local', model: 'any' };
const params = { name: 'helper' };
const place = {
  ...{ name: 'place', description: 'Says where its user is.', inputSchema: { type: 'object' } },
  runsOnClient: true as const,
};

forEachService(
  'APPR-14 TOOL-33 AGENT-7 answers go on in the agent that has asked, in its version, and in no other of its name',
  async (open) => {
    const app = await openApprovals(open, { more: [place as never] });
    const { client } = app;
    const ask = (sessionId: string, ...wanted: Wanted[]) =>
      runJson(client, 'helper', { message: calls(...wanted), sessionId });
    const approve = async (sessionId: string): Promise<AgentRunRequest> => {
      const { approvals } = await ask(sessionId, ['pay']);
      const [asked] = approvals;
      return { sessionId, approvals: [{ requestId: asked?.requestId ?? '', approved: true }] };
    };
    const tell = async (sessionId: string): Promise<AgentRunRequest> => {
      const reply = await ask(sessionId, ['place']);
      assert.equal(reply.status, 'AwaitingInput');
      return { sessionId, toolResults: [{ callId: reply.clientToolCalls[0]?.callId ?? '', result: 'Bern' }] };
    };
    const edited = [await approve('s-1'), await tell('s-2')];
    const lost = [await approve('s-3'), await tell('s-4'), await approve('s-5')];

    // An edit: it goes on with what it had, and the next turn has what is new.
    const save = (more: object = {}) =>
      client.agents.save({
        params,
        body: { ...params, model: { ...model, model: 'other' }, toolNames: ['look'], ...more },
      });
    await save({ expectedVersion: 1 });
    for (const body of edited) {
      const { runId, status } = await runJson(client, 'helper', body);
      const { agentVersion, modelId } = await getRun(client, runId);
      assert.deepEqual([status, agentVersion, modelId], ['Completed', 1, 'any']);
      const next = await runJson(client, 'helper', { message: 'Hi', sessionId: body.sessionId ?? null });
      assert.equal((await getRun(client, next.runId)).agentVersion, 2);
    }
    assert.equal(app.done.length, 1);

    // Another agent, whose first version has the same number.
    await client.agents.remove({ params });
    await app.clock.jump(1000);
    await client.agents.create({ body: { ...params, model, toolNames: ['pay', 'place'] } });
    const fails = async (body: AgentRunRequest | undefined) => {
      const { status, code } = await refusal(start(client, 'helper', { ...body, stream: false }));
      assert.deepEqual([status, code], [404, 'agent-not-found']);
    };
    await fails(lost[0]);
    await fails(lost[1]);
    await save({ expectedVersion: 1, toolNames: ['pay'] });
    await fails(lost[2]);
    assert.equal(app.done.length, 1, 'nothing was called');
    // What waits is not used up, and whoever says something else begins anew.
    await fails(lost[0]);
    const { status } = await runJson(client, 'helper', { message: 'Hi', sessionId: 's-3' });
    assert.equal(status, 'Completed');
    assert.equal(
      (await refusal(start(client, 'helper', { ...lost[0], stream: false }))).code,
      'approval-already-decided',
    );
  },
);
