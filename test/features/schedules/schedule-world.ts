import type { Client, ClientInput } from '../../../src/client/client.ts';
import type { JobDetailResponse, JobRecord } from '../../../src/features/jobs/jobs.schema.ts';
import type { scheduleOperations } from '../../../src/features/schedules/schedules.operations.ts';
import type { JobSchedule } from '../../../src/features/schedules/schedules.schema.ts';
import { eventually } from '../../support/eventually.ts';

type SaveBody = ClientInput<(typeof scheduleOperations)['save']>['body'];

/** A job that a worker has done at once: nothing is due that any policy would remove. */
export const sweep = { handlerKey: 'acp.retention', targetName: '*' } as const;

export const save = async (client: Client, name: string, body: SaveBody): Promise<JobSchedule> =>
  (await client.schedules.save({ params: { name }, body })).body;

export const show = async (client: Client, name: string): Promise<JobSchedule> =>
  (await client.schedules.get({ params: { name } })).body;

export const trigger = async (client: Client, name: string, payload?: unknown): Promise<JobRecord> =>
  (
    await client.schedules.trigger({
      params: { name },
      body: payload === undefined ? {} : { payload: payload as never },
    })
  ).body;

export const jobsOf = async (client: Client, scheduleId: string): Promise<readonly JobRecord[]> =>
  (await client.jobs.list({ query: { scheduleId, take: 200 } })).body;

export const detail = async (client: Client, id: string): Promise<JobDetailResponse> =>
  (await client.jobs.get({ params: { id } })).body;

/** The job with its items once it has ended. */
export const ended = (client: Client, id: string): Promise<JobDetailResponse> =>
  eventually('the end of the job', async () => {
    const answer = await detail(client, id);
    return answer.job.completedAt === null ? null : answer;
  });
