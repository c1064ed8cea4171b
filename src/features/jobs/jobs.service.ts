import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { clampPaging, type Json } from '../../contract/schema.ts';
import type { CallContext, Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { Logger } from '../../core/logger.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { SessionAccess } from '../sessions/index.ts';
import { itemsOfStretch, type JobItem, type JobItemStore } from './job-items.store.ts';
import { outOfReach } from './job-lease.store.ts';
import type { jobOperations } from './jobs.operations.ts';
import type { JobDetailResponse, JobRecord, shownItems } from './jobs.schema.ts';
import type { JobStore } from './jobs.store.ts';

/** What a job works on, as its feature knows it. */
export interface JobWork {
  /** Keys of the jobs whose work belongs to the owner of a run. */
  readonly runKeys: readonly string[];
  /** Whether reads find the job: that of another owner's run is answered as unknown. */
  maySee(context: CallContext, job: JobRow): Promise<boolean>;
  /** Throws `run-not-found` when the caller may not end what the job does. */
  requireCancel(context: CallContext, job: JobRow): Promise<void>;
  /** Ends a job that has not begun, with what waits for it; false when a worker took it meanwhile. */
  cancelPending(job: JobRow, actor: string | null): Promise<boolean>;
}

export interface JobServiceDeps {
  readonly store: Pick<JobStore, 'find' | 'list' | 'payloadOf' | 'requestCancel' | 'withPayloads'>;
  readonly items: Pick<JobItemStore, 'stretches'>;
  readonly work: JobWork;
  readonly owners: Pick<SessionAccess, 'listOwner'>;
  /** Called when a worker, of this process or of another one, has the job that is to stop. */
  heedCancel(id: string): Promise<void>;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
}

/** Tells an agent of another system that nobody waits any more for what it does. */
export const remoteCancelKey = 'acp.remote-task-cancel';

/** Queued by the service for itself: no caller started them, and one event can bring thousands of deliveries. */
const backgroundJobKeys: readonly string[] = ['acp.webhook-delivery', 'acp.online-eval', remoteCancelKey];

/** Of the service itself. Their payloads hold messages, which the scope of jobs does not open. */
export const internalJobKeys: ReadonlySet<string> = new Set([
  'acp.agent-run',
  'acp.approval-resume',
  'acp.run-continuation',
  'acp.webhook-delivery',
  'acp.online-eval',
  remoteCancelKey,
]);

// A job may go back in line while it is cancelled, because its session waits; hardly twice in a row.
const maxTries = 5;

export const toJobRecord = (row: JobRow, payload: unknown): JobRecord => ({
  id: row.id,
  tenantId: row.tenant_id,
  scheduleId: row.schedule_id,
  handlerKey: row.handler_key,
  lane: row.lane,
  targetName: row.target_name,
  status: row.status as JobRecord['status'],
  payload: payload as Json,
  totalItems: row.total_items,
  doneItems: row.done_items,
  failedItems: row.failed_items,
  attempt: row.attempt,
  maxAttempts: row.max_attempts,
  leaseOwner: row.lease_owner,
  leaseUntil: isoTimeOrNull(row.lease_until),
  scheduledFor: isoTime(row.scheduled_for === outOfReach ? (row.due_at ?? row.created_at) : row.scheduled_for),
  startedAt: isoTimeOrNull(row.started_at),
  completedAt: isoTimeOrNull(row.completed_at),
  errorCode: row.error_code,
  errorMessage: row.error_message,
  createdAt: isoTime(row.created_at),
});

const toItemRecord = (item: JobItem, hidesInput: boolean): JobDetailResponse['items'][number] => ({
  id: item.id,
  jobId: item.jobId,
  seq: item.seq,
  input: (hidesInput ? null : item.input) as Json,
  runId: item.runId,
  status: item.status,
  error: item.error,
});

/** The text of a detail whose items come a stretch at a time, so that no more than one of them is in memory. */
const detailParts = async function* (
  job: JobRecord,
  first: JobDetailResponse['items'],
  others: AsyncIterable<JobDetailResponse['items']>,
): AsyncGenerator<string> {
  let separator = '';
  const textOf = (items: JobDetailResponse['items']): string => {
    if (items.length === 0) return '';
    const text = separator + JSON.stringify(items).slice(1, -1);
    separator = ',';
    return text;
  };
  yield `{"job":${JSON.stringify(job)},"items":[${textOf(first)}`;
  for await (const items of others) yield textOf(items);
  yield ']}';
};

const notFound = (): AcpError => new AcpError('not-found', 'There is no job with this id.');

export const jobService = (deps: JobServiceDeps): Handlers<typeof jobOperations> => {
  const { store, work, owners, heedCancel, log, now } = deps;
  const hidesPayload = (row: JobRow): boolean => internalJobKeys.has(row.handler_key);

  const find = async (context: CallContext, id: string): Promise<JobRow> => {
    const row = await store.find(context.tenantId, id.toLowerCase());
    if (row === undefined || !(await work.maySee(context, row))) throw notFound();
    return row;
  };

  /** The items that are asked for, a stretch of the job at a time. */
  const shownOf = async function* (
    row: JobRow,
    asked: (typeof shownItems)[number],
  ): AsyncGenerator<JobDetailResponse['items']> {
    const hides = hidesPayload(row);
    if ({ All: row.total_items, Failed: row.failed_items, None: 0 }[asked] === 0) return;
    for await (const all of deps.items.stretches(row.tenant_id, row.id)) {
      const wanted = asked === 'All' ? all : all.filter(({ status }) => status === 'Failed');
      yield wanted.map((item) => toItemRecord(item, hides));
    }
  };

  return {
    async list({ tenantId, principal }, { query }) {
      const { scheduleId, background = true, skip: _skip, take: _take, ...others } = query;
      const exact = {
        ...others,
        ...(scheduleId === undefined ? {} : { scheduleId: scheduleId.toLowerCase() }),
        withoutKeys: background || others.handlerKey !== undefined ? [] : backgroundJobKeys,
      };
      const ownerId = owners.listOwner(principal);
      const owned = ownerId === null ? null : { ownerId, runKeys: work.runKeys };
      const stored = await store.list(tenantId, { ...exact, ...clampPaging(query), owned });
      const shown = stored.map((row) => (hidesPayload(row) ? { ...row, payload: null } : row));
      const { rows, unreadable } = store.withPayloads(tenantId, shown);
      if (unreadable !== null)
        log.warn(
          { tenantId, jobs: unreadable.count, error: unreadable.error },
          'Listed jobs lack payloads that cannot be decrypted',
        );
      return ok(rows.map((row) => toJobRecord(row, row.payload === null ? null : JSON.parse(row.payload))));
    },

    async get(context, { params, query }) {
      const row = await find(context, params.id);
      const { items: asked = 'All' } = query;
      const job = toJobRecord(row, hidesPayload(row) || asked !== 'All' ? null : store.payloadOf(row));
      const shown = shownOf(row, asked);
      // What fails here is still answered as an error.
      const first = await shown.next();
      if (first.done === true) return ok({ job, items: [] });
      if (row.total_items <= itemsOfStretch) return ok({ job, items: first.value });
      return { status: 200, parts: detailParts(job, first.value, shown) };
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
          await heedCancel(job.id);
          return noContent();
        }
        job = await find(context, params.id);
      }
      throw new AcpError('job-not-cancelable', `Job ${job.id} has ended with status ${job.status}.`);
    },
  };
};
