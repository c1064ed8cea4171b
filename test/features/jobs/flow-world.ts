import type { AppSetup, TestApp } from '../../support/app.ts';
import { testClock } from '../../support/clock.ts';
import { enqueue, getRun } from '../runs/run-calls.ts';

type Service = Pick<TestApp, 'client'>;

export const minuteMs = 60_000;
/** A time whose minute ends 27 s later. */
export const at = Date.parse('2026-03-01T10:30:33.000Z');
export const queueOnly = { Scheduling: { RunWorker: false } } as const;
/** No time passes but what a test lets pass. */
export const standing = (time = at): Pick<AppSetup, 'clock'> => ({ clock: testClock({ at: time, stands: true }) });

export const jobOf = async ({ client }: Service, id: string) => (await client.jobs.get({ params: { id } })).body.job;

/** Status and code of each job: `Canceled flow-replaced`. */
export const seen = (app: Service, ids: readonly string[]): Promise<string[]> =>
  Promise.all(
    ids.map(async (id) => {
      const { status, errorCode } = await jobOf(app, id);
      return `${status} ${errorCode}`;
    }),
  );

export const statuses = ({ client }: Service, ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await getRun(client, id)).status));

/** One after another; the ids of their runs and jobs. */
export const enqueueAll = async (
  { client }: Service,
  requests: readonly Parameters<typeof enqueue>[2][],
): Promise<string[]> => {
  const ids: string[] = [];
  for (const request of requests) ids.push(await enqueue(client, 'helper', request));
  return ids;
};
