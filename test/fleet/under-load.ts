import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { isIdle } from '../e2e/records.ts';
import { until } from '../e2e/support.ts';
import { call } from '../e2e/wire.ts';
import { type Fleet, type FleetSetup, openFleet } from '../support/fleet.ts';
import { findings } from './checker.ts';
import { startEffectsServer } from './effects-server.ts';
import { applyLoad, emptyHistory, type History } from './load.ts';
import { allowance, limit, prepare, script, seeded, service } from './soak.ts';

export interface LoadReport {
  readonly history: History;
  /** Calls that somebody approved, and was told that this counts. */
  readonly approved: ReadonlySet<string>;
  /** What clients were told and what does not agree with it; empty: all does. */
  readonly findings: readonly string[];
}

const pays = {
  when: { message: '/pay (?<order>\\w+)/', call: 1 },
  reply: { toolCalls: [{ name: 'guarded', arguments: { name: '{{order}}' } }] },
};

/** Runs that ask first; each is approved as often as it takes to be told that it is, at whichever process. */
const approve = async (url: string, isOver: () => boolean, approved: Set<string>): Promise<void> => {
  for (let count = 0; !isOver(); count += 1) {
    const name = `pay${count}`;
    const body = { message: `pay ${name}`, sessionId: name };
    const queued = await call(`${url}/api/agents/cashier/run`, { body, headers: { prefer: 'respond-async' } });
    if (queued.status !== 202) {
      await pause(100);
      continue;
    }
    const { runId } = queued.json<{ runId: string }>();
    const id = await until('the question', async () => {
      const pending = await call(`${url}/api/approvals/pending`);
      const rows = pending.status === 200 ? pending.json<{ id: string; runId: string }[]>() : [];
      return rows.find((row) => row.runId === runId)?.id ?? null;
    });
    await until('the decision', async () => {
      const answer = await call(`${url}/api/approvals/${id}/decide`, { body: { approved: true } });
      return answer.status === 200;
    });
    approved.add(name);
  }
};

/** A fleet under the load of the soak, with approvals, while something is done to it. */
export const underLoad = async (
  setup: Pick<FleetSetup, 'processes' | 'database' | 'directDatabase'>,
  seed: number,
  meanwhile: (fleet: Fleet) => Promise<void>,
): Promise<LoadReport> => {
  const world = await startEffectsServer();
  const folder = mkdtempSync(join(tmpdir(), 'acp-load-'));
  world.writeTools(folder);
  const fleet = await openFleet({ ...setup, script: [pays, ...script], service, host: { Tools: [folder] } });
  try {
    const limitedAgents = ['limited-0'];
    const cashier = { name: 'cashier', model: { provider: 'demo', model: 'm' }, toolNames: ['guarded'] };
    await call(`${fleet.url}/api/agents`, { body: cashier });
    await prepare(fleet, { limitedAgents, pricedAgents: [] });
    const history = emptyHistory();
    const approved = new Set<string>();
    let over = false;
    const isOver = () => over;
    const load = Promise.all([
      applyLoad({ url: fleet.url, history, isOver, random: seeded(seed), limitedAgents, pricedAgents: [] }),
      approve(fleet.url, isOver, approved),
    ]);
    // Ends the load also when it fails.
    const done = meanwhile(fleet).finally(() => {
      over = true;
    });
    await Promise.all([done, load]);
    const [first] = fleet.members;
    if (first === undefined) throw new Error('Nobody serves.');
    await until('the end of all runs and jobs', () => isIdle(first));
    const unpaid = [...approved].filter((name) => world.hits.get(`External/${name}`) !== 1);
    return {
      history,
      approved,
      findings: [
        ...(await findings({ service: first, history, hits: world.hits, limit, allowance, mostLogs: 500, lives: [] })),
        ...unpaid.map((name) => `${name} was approved, and not done once`),
      ],
    };
  } finally {
    world.close();
    await fleet.close();
    rmSync(folder, { recursive: true, force: true });
  }
};
