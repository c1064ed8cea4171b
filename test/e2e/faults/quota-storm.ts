import assert from 'node:assert/strict';
import { everyRun } from '../records.ts';
import { type ServiceProcess, until } from '../support.ts';
import { call } from '../wire.ts';

const clients = 64;

/** Makes a change that has to succeed. */
export const put = async (service: ServiceProcess, path: string, method: string, body: object): Promise<void> => {
  const answer = await call(service.url + path, { method, body });
  assert.ok(answer.status < 300, answer.text);
};

/** The current counter of an agent. */
export const usedBy = async (service: ServiceProcess, agent: string, period: 'Daily' | 'Monthly') => {
  const answer = await call(`${service.url}/api/quotas/usage?agentName=${agent}&period=${period}`);
  const [row] = answer.json<{ usage: { runs: number; tokens: number; cost: number }[] }>().usage;
  return row ?? assert.fail('nothing was counted');
};

/** Whether the counters are the sums of the recorded runs. */
export const verified = async (service: ServiceProcess): Promise<boolean> =>
  (await call(`${service.url}/api/quotas/verification`)).json<{ matches: boolean }>().matches;

/**
 * 64 clients, half of them for each agent, that run it one time after the other until they are refused, or until nobody
 * answers any more: after `enough` answers the service is killed in the middle of runs. Gives why each client stopped.
 */
export const storm = async (
  service: ServiceProcess,
  agents: readonly [string, string],
  enough: number,
): Promise<readonly string[]> => {
  let answered = 0;
  const reached = Promise.withResolvers<void>();
  const work = async (agent: string): Promise<string> => {
    for (;;) {
      const body = { message: 'Tell me something.', stream: false };
      const answer = await call(`${service.url}/api/agents/${agent}/run`, { body }).catch(() => null);
      if (answer === null) return 'gone';
      if (answer.status !== 200) return answer.json<{ code: string }>().code;
      answered += 1;
      if (answered === enough) reached.resolve();
    }
  };
  const working = Promise.all(Array.from({ length: clients }, (_, index) => work(agents[index % 2] ?? agents[0])));
  await Promise.race([reached.promise, working]);
  if (enough < Number.POSITIVE_INFINITY) {
    // Clients that are answered together start together: between two rounds nothing would be in progress. Once all were
    // refused nothing is any more, which the caller of the storm finds out.
    let over = false;
    void working.then(() => {
      over = true;
    });
    await until('runs in progress', async () => over || (await everyRun(service, { status: 'Running' })).length > 0);
    await service.kill();
  }
  return working;
};
