import assert from 'node:assert/strict';
import { eventually, processMs } from '../support/eventually.ts';
import type { Api } from './api.ts';

/** How old what a process knows of keys, rules, agents and skills may be, where others may change them. */
const copyAgeMs = 5000;

/**
 * Looks at every process until a change that was answered counts there: at once where one process serves, within the time
 * that is promised where several do. A look that begins after that time has to see it, however long it takes.
 */
export const inForce = async (api: Api, what: string, look: (process: Api) => Promise<boolean>): Promise<void> => {
  const { processes } = api;
  const until = performance.now() + (processes.length === 1 ? 0 : copyAgeMs);
  await Promise.all(
    processes.map(async (process) => {
      const seen = await eventually(
        what,
        async () => {
          const isLate = performance.now() > until;
          return (await look(process)) ? 'seen' : isLate && 'not seen in time';
        },
        processMs,
      );
      assert.equal(seen, 'seen', what);
    }),
  );
};

/** Where a process is the only one it knows its own changes; nothing has to be asked for. */
const servesAlone = ({ processes }: Api): boolean => processes.length === 1;

/** All rules of approval of the tenant, as they are now: a process has them together, so that the last one tells of all. */
export const approvalRulesInForce = async (api: Api): Promise<void> => {
  if (servesAlone(api)) return;
  const agentName = await api.agent({ toolNames: ['guarded'] });
  const made = await api.post('/api/approvals/rules', { agentName, toolName: 'guarded' });
  assert.equal(made.status, 201, made.text);
  await inForce(api, 'the rules of approval count', async (process) => {
    const answer = await process.run(agentName, 'call guarded {"amount":1}');
    assert.equal(answer.status, 200, answer.text);
    return answer.body.status === 'Completed';
  });
};

/** All quotas of the tenant, as they are now; it has one more then. */
export const quotasInForce = async (api: Api): Promise<void> => {
  if (servesAlone(api)) return;
  const agentName = await api.agent();
  const made = await api.put('/api/quotas', { agentName, period: 'Monthly', maxRuns: 0 });
  assert.equal(made.status, 200, made.text);
  await inForce(api, 'the quotas count', async (process) => {
    const { status, text } = await process.run(agentName, 'Hi');
    return status === 429 && text.includes(`agent '${agentName}'`);
  });
};

/** A new version of an agent; whoever looks runs it. */
export const agentInForce = (api: Api, name: string, version: number): Promise<void> =>
  inForce(api, `${name} is version ${version}`, async (process) => {
    const { body } = await process.run(name, 'Hi');
    return body.agentVersion === version;
  });

export const agentGone = (api: Api, name: string): Promise<void> =>
  inForce(api, `${name} is gone`, async (process) => {
    const { status } = await process.post(`/api/agents/${name}/estimate`, { message: 'Hi' });
    return status === 404;
  });
