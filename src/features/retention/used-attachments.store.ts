import type { Storage } from '../../db/storage.ts';

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Ids that runs in line or in progress name in what they were given: those of attachments are among them. */
export const usedByOpenRuns = async ({ db, rows }: Storage, tenantId: string): Promise<readonly string[]> => {
  const open = db
    .selectFrom('runs')
    .where('runs.tenant_id', '=', tenantId)
    .where('runs.status', 'in', ['Queued', 'Running']);
  const inputs = await open
    .innerJoin('run_inputs', 'run_inputs.run_id', 'runs.id')
    .select(['run_inputs.run_id', 'run_inputs.messages'])
    .execute();
  const jobs = await open.innerJoin('jobs', 'jobs.id', 'runs.job_id').select(['jobs.id', 'jobs.payload']).execute();
  const texts = [
    ...inputs.map((row) => rows.open('run_inputs', tenantId, row).messages),
    ...jobs.map((row) => rows.open('jobs', tenantId, row).payload),
  ];
  const named = new Set(texts.flatMap((text) => text?.match(uuid) ?? []));
  if (named.size === 0) return [];
  const used = await db
    .selectFrom('attachments')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('id', 'in', [...named])
    .execute();
  return used.map(({ id }) => id);
};
