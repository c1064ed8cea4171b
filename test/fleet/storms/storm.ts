import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { JobRecord, RunRecord } from '../../e2e/records.ts';
import { type Answer, type Call, call } from '../../e2e/wire.ts';
import { eventually, processMs } from '../../support/eventually.ts';
import type { Fleet } from '../../support/fleet.ts';
import type { MeteredProvider } from '../../support/providers/metered.ts';
import type { EffectsServer } from '../effects-server.ts';

/** Clients that ask at the same time. */
export const clients = 64;

/** Of each process to the database. */
export const mostConnections = 8;

/** What a storm breaks over. */
export interface Storm {
  readonly fleet: Fleet;
  /** How often each is repeated; 1 is the short form. */
  readonly rounds: number;
  readonly provider: MeteredProvider;
  readonly world: EffectsServer;
}

const scriptedModel = { provider: 'demo', model: 'm' };

/** The code of a refusal; of the proxy's own, which have no body, none. */
export const codeOf = ({ text }: Answer): string =>
  text.startsWith('{') ? ((JSON.parse(text) as { code?: string }).code ?? '') : '';

/** Asks again while a process is too busy to answer, as a client of a service does that is told to come back. */
export const ask = async ({ fleet }: Storm, path: string, options: Call = {}): Promise<Answer> => {
  const answer = await call(fleet.url + path, options);
  if (answer.status !== 503 || codeOf(answer) !== 'store-unavailable') return answer;
  await pause(100);
  return ask({ fleet } as Storm, path, options);
};

export const read = async <T>(storm: Storm, path: string): Promise<T> => {
  const answer = await ask(storm, path);
  assert.equal(answer.status, 200, `${path}: ${answer.text}`);
  return answer.json<T>();
};

export const send = async (storm: Storm, method: string, path: string, body?: object): Promise<Answer> => {
  const answer = await ask(storm, path, { method, body });
  assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.text}`);
  return answer;
};

export const saveAgent = (storm: Storm, name: string, more: object = {}): Promise<Answer> =>
  send(storm, 'POST', '/api/agents', { name, model: scriptedModel, ...more });

export const run = (storm: Storm, agent: string, body: object, headers: Record<string, string> = {}): Promise<Answer> =>
  ask(storm, `/api/agents/${agent}/run`, { body: { stream: false, ...body }, headers });

/** A run for later; its id. */
export const queue = async (storm: Storm, agent: string, body: object): Promise<string> => {
  const answer = await ask(storm, `/api/agents/${agent}/run`, { body, headers: { prefer: 'respond-async' } });
  assert.equal(answer.status, 202, answer.text);
  return answer.json<{ runId: string }>().runId;
};

/** All at once; the results in the order of the clients. */
export const together = <T>(work: (client: number) => Promise<T>, count = clients): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, client) => work(client)));

/** A run as lists have it, with what the storms sum up. */
export type StormRun = RunRecord & {
  readonly startedAt: string | null;
  readonly usage: { readonly totalTokens: number | null } | null;
  readonly cost: { readonly totalCost: number | null } | null;
  readonly sessionId: string | null;
};

type Filter = Readonly<Record<string, string>>;

// The longest page that there is.
const take = 200;

const everyPage = async <T>(storm: Storm, path: string, filter: Filter): Promise<T[]> => {
  const records: T[] = [];
  for (;;) {
    const query = new URLSearchParams({ ...filter, skip: String(records.length), take: String(take) });
    const page = await read<readonly T[]>(storm, `${path}?${query}`);
    records.push(...page);
    if (page.length < take) return records;
  }
};

export const runsOf = (storm: Storm, filter: Filter): Promise<StormRun[]> => everyPage(storm, '/api/runs', filter);

export const jobsOf = (storm: Storm): Promise<JobRecord[]> => everyPage(storm, '/api/jobs', {});

const ends = new Set(['Completed', 'Failed', 'Canceled']);

/** On a machine that is too busy a process may not learn in time whether the agent is stopped, and then does not go on. */
export const assertEnded = ({ id, status, error }: StormRun): void => {
  if (status !== 'Completed') assert.deepEqual([status, error?.type], ['Failed', 'store_unavailable'], id);
};

/** No run and no job waits or is at work. */
export const calm = (storm: Storm): Promise<unknown> =>
  eventually(
    'all work is done',
    async () => {
      for (const status of ['Queued', 'Running']) if ((await runsOf(storm, { status })).length > 0) return false;
      return (await jobsOf(storm)).every(({ status }) => ends.has(status));
    },
    processMs,
  );
