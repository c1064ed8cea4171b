import assert from 'node:assert/strict';
import { type LedgerCall, turnStore } from '../../src/features/runs/run-turns.store.ts';
import { storedRows } from '../support/store.ts';
import type { ServiceProcess, Site } from './support.ts';
import { call } from './wire.ts';

// What a service has, all of it, whichever process made it.

export interface RunRecord {
  readonly id: string;
  readonly agentName: string;
  readonly status: string;
  readonly isStreaming: boolean;
  readonly continuedFromRunId: string | null;
  readonly error: { readonly class: string; readonly type: string; readonly message: string } | null;
  readonly eventCount: number;
  readonly completedAt: string | null;
}

export interface JobRecord {
  readonly id: string;
  readonly status: string;
  readonly attempt: number;
  readonly errorCode: string | null;
}

type Served = Pick<ServiceProcess, 'url'>;
type Filter = Readonly<Record<string, string>>;

// The longest page that there is.
const take = 200;

/** All records of a list, a page at a time. */
export const everyPage = async <T>({ url }: Served, path: string, filter: Filter = {}): Promise<T[]> => {
  const records: T[] = [];
  for (;;) {
    const query = new URLSearchParams({ ...filter, skip: String(records.length), take: String(take) });
    const answer = await call(`${url}${path}?${query}`);
    assert.equal(answer.status, 200, answer.text);
    const page = answer.json<T[]>();
    records.push(...page);
    if (page.length < take) return records;
  }
};

/** With those that other runs called; newest first. */
export const everyRun = (service: Served, filter: Filter = {}): Promise<RunRecord[]> =>
  everyPage(service, '/api/runs', { includeChildren: 'true', ...filter });

/** Newest first. */
export const everyJob = (service: Served, filter: Filter = {}): Promise<JobRecord[]> =>
  everyPage(service, '/api/jobs', filter);

export const everyAttachment = (service: Served): Promise<{ readonly id: string; readonly sha256: string }[]> =>
  everyPage(service, '/api/attachments', {});

/** Runs that wait or execute. */
export const unfinishedRuns = async (service: Served): Promise<RunRecord[]> => {
  const waiting = await everyRun(service, { status: 'Queued' });
  return [...waiting, ...(await everyRun(service, { status: 'Running' }))];
};

const endStatuses = new Set(['Completed', 'Failed', 'Canceled']);

/** No run and no job waits or is at work. */
export const isIdle = async (service: Served): Promise<boolean> => {
  if ((await unfinishedRuns(service)).length > 0) return false;
  if ((await everyJob(service)).some(({ status }) => !endStatuses.has(status))) return false;
  // What a job began meanwhile.
  return (await unfinishedRuns(service)).length === 0;
};

/** Calls of these runs that were begun, settled or not. */
export const ledger = (site: Site, runs: readonly Pick<RunRecord, 'id'>[]): Promise<LedgerCall[]> =>
  site.aside(async (storage) => {
    const turns = storage.stores(turnStore);
    return (await Promise.all(runs.map(({ id }) => turns.ledger(id)))).flat();
  });

/** What is stored of turns that have not finished. */
export const unfinishedTurns = (site: Site) => site.aside((storage) => storedRows(storage, 'run steps'));
