import type { RetentionRun, RetentionTarget } from '../../../src/features/retention/retention.schema.ts';
import type { TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

export const dayMs = 86_400_000;

/** The moment so many days ago, in epoch milliseconds. */
export const daysAgo = (days: number): number => Date.now() - days * dayMs;

/** The job once it is over. */
export const ended = ({ client }: Pick<TestApp, 'client'>, jobId: string) =>
  eventually('the end of the sweep', async () => {
    const { job } = (await client.jobs.get({ params: { id: jobId } })).body;
    return job.completedAt === null ? null : job;
  });

/** The history of a manual sweep, once its job is over. */
export const swept = async (app: Pick<TestApp, 'client'>, target?: RetentionTarget): Promise<RetentionRun[]> => {
  const { retention } = app.client;
  const { jobId } = (await retention.run({ query: target === undefined ? {} : { target } })).body;
  await ended(app, jobId);
  return (await retention.history({ query: { take: 200 } })).body.filter((run) => run.jobId === jobId);
};
