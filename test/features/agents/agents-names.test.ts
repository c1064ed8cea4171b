import assert from 'node:assert/strict';
import { forEachService } from '../../support/app.ts';
import { refusal } from '../runs/run-calls.ts';

forEachService('AGENT-3 SKILL-2 SESS-1 a name that none can have is unknown, like any other', async (open) => {
  const { client } = await open({ agents: [{ name: 'helper' }] });
  for (const name of ['no agent', '-x', 'ä', 'x'.repeat(300), 'a/b', '%']) {
    const params = { name };
    const body = { name: 'helper', model: { provider: 'demo', model: 'demo-1' } };
    for (const [call, code] of [
      [() => client.agents.get({ params }), 'agent-not-found'],
      [() => client.agents.versions({ params }), 'agent-not-found'],
      [() => client.agents.remove({ params }), 'agent-not-found'],
      [() => client.agents.rollback({ params, body: { version: 1 } }), 'agent-not-found'],
      [() => client.agents.diff({ params: { name, a: 1, b: 1 } }), 'agent-not-found'],
      [() => client.agents.estimate({ params, body: { message: 'Hi' } }), 'agent-not-found'],
      [() => client.runs.start({ params, body: { message: 'Hi', stream: false } }), 'agent-not-found'],
      [
        () => client.runs.start({ params, body: { message: 'Hi' }, headers: { prefer: 'respond-async' } }),
        'agent-not-found',
      ],
      [() => client.skills.get({ params }), 'skill-not-found'],
      [() => client.skills.remove({ params }), 'skill-not-found'],
      [() => client.sessions.get({ params: { sessionId: name } }), 'session-not-found'],
      [() => client.grants.remove({ params: { skillName: name }, query: {} }), 'not-found'],
    ] as const) {
      const problem = await call().then(
        () => null,
        (error: { problem?: { status: number; code: string } }) => error.problem,
      );
      assert.deepEqual([problem?.status, problem?.code], [404, code], name);
    }
    assert.equal((await refusal(client.agents.save({ params, body }))).code, 'name-mismatch');
  }
});
