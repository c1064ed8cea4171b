import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { clampPaging, type Json } from '../../contract/schema.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { Logger } from '../../core/logger.ts';
import type { JobRow } from '../../db/job-tables.ts';
import type { jobOperations } from './jobs.operations.ts';
import type { JobRecord } from './jobs.schema.ts';
import type { JobStore } from './jobs.store.ts';

/** What the owner of a job's work decides about its end. */
export interface JobWork {
  /** Throws `run-not-found` when the caller may not end what the job does. */
  requireCancel(context: CallContext, job: JobRow): Promise<void>;
  /** Ends a job that has not begun, with what waits for it; false when a worker took it meanwhile. */
  cancelPending(job: JobRow, actor: string | null): Promise<boolean>;
}

export interface JobServiceDeps {
  readonly store: Pick<JobStore, 'find' | 'list' | 'payloadOf' | 'requestCancel' | 'withPayloads'>;
  readonly work: JobWork;
  /** Called when a worker of this process may have the job that is to stop. */
  heedCancels(): Promise<void>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** Their payloads hold messages, which the scope of jobs does not open. */
const internalKeys: ReadonlySet<string> = new Set([
  'acp.agent-run',
  'acp.approval-resume',
  'acp.run-continuation',
  'acp.webhook-delivery',
  'acp.online-eval',
]);

// A job may go back in line while it is cancelled, because its session waits; hardly twice in a row.
const maxTries = 5;

const toRecord = (row: JobRow, payload: unknown): JobRecord => ({
  id: row.id,
  tenantId: row.tenant_id,
  scheduleId: null,
  handlerKey: row.handler_key,
  lane: row.lane,
  targetName: row.target_name,
  status: row.status as JobRecord['status'],
  payload: payload as Json,
  totalItems: 0,
  doneItems: 0,
  failedItems: 0,
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  leaseOwner: row.lease_owner,
  leaseUntil: isoTimeOrNull(row.lease_until),
  scheduledFor: isoTime(row.scheduled_for),
  startedAt: isoTimeOrNull(row.started_at),
  completedAt: isoTimeOrNull(row.completed_at),
  errorCode: row.error_code,
  errorMessage: row.error_message,
  createdAt: isoTime(row.created_at),
});

const notFound = (): AcpError => new AcpError('not-found', 'There is no job with this id.');

export const jobService = ({ store, work, heedCancels, log, now }: JobServiceDeps): Handlers<typeof jobOperations> => {
  const hidesPayload = (row: JobRow): boolean => internalKeys.has(row.handler_key);

  const find = async ({ tenantId }: CallContext, id: string): Promise<JobRow> => {
    const row = await store.find(tenantId, id.toLowerCase());
    if (row === undefined) throw notFound();
    return row;
  };

  return {
    async list({ tenantId }, { query }) {
      const { scheduleId, skip: _skip, take: _take, ...exact } = query;
      // No job of this version comes from a schedule.
      if (scheduleId !== undefined) return ok([]);
      const stored = await store.list(tenantId, { ...exact, ...clampPaging(query) });
      const shown = stored.map((row) => (hidesPayload(row) ? { ...row, payload: null } : row));
      const { rows, unreadable } = store.withPayloads(tenantId, shown);
      if (unreadable !== null)
        log.warn(
          { tenantId, jobs: unreadable.count, error: unreadable.error },
          'Listed jobs lack payloads that cannot be decrypted',
        );
      return ok(rows.map((row) => toRecord(row, row.payload === null ? null : JSON.parse(row.payload))));
    },

    async get(context, { params }) {
      const row = await find(context, params.id);
      return ok({ job: toRecord(row, hidesPayload(row) ? null : store.payloadOf(row)), items: [] });
    },

    async cancel(context, { params }) {
      const { actor } = context.principal;
      let job = await find(context, params.id);
      await work.requireCancel(context, job).catch((error: unknown) => {
        throw error instanceof AcpError && error.code === 'run-not-found' ? notFound() : error;
      });
      for (let tries = 0; tries < maxTries && job.completed_at === null; tries += 1) {
        if (job.status === 'Pending' && (await work.cancelPending(job, actor))) return noContent();
        if (await store.requestCancel(job.id, actor, now())) {
          await heedCancels();
          return noContent();
        }
        job = await find(context, params.id);
      }
      throw new AcpError('job-not-cancelable', `Job ${job.id} has ended with status ${job.status}.`);
    },
  };
};
