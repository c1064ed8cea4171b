import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import type { RetentionRun, RetentionTarget } from '../../../src/features/retention/retention.schema.ts';
import type { TestApp } from '../../support/app.ts';

const dayMs = 86_400_000;

/** The moment so many days ago, in epoch milliseconds. */
export const daysAgo = (days: number): number => Date.now() - days * dayMs;

/** The history of a manual sweep, once its job is over. */
export const swept = async (app: TestApp, target?: RetentionTarget): Promise<RetentionRun[]> => {
  const { retention } = app.client;
  const { jobId } = (await retention.run({ query: target === undefined ? {} : { target } })).body;
  for (let tries = 0; tries < 1000; tries += 1) {
    const [over] = app.rows('select id from service_jobs where id = ? and completed_at is not null', jobId);
    if (over !== undefined)
      return (await retention.history({ query: { take: 200 } })).body.filter((run) => run.jobId === jobId);
    await pause(10);
  }
  throw new assert.AssertionError({ message: 'The sweep did not end.' });
};
