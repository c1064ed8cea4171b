import Type, { type Static } from 'typebox';
import { Int32, JsonValue, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

export const jobStatuses = ['Pending', 'Leased', 'Running', 'Completed', 'Failed', 'Canceled'] as const;

const hidden = 'Null for the jobs of queued runs, because it holds messages';

const counter = (description?: string) =>
  Int32({ minimum: 0, default: 0, ...(description === undefined ? {} : { description }) });

export const JobRecord = Type.Object(
  {
    id: Type.Unsafe<string>({ ...Uuid, description: 'For the job of a queued run the id of the run' }),
    tenantId: Type.String(),
    scheduleId: nullable(Uuid),
    handlerKey: Type.String(),
    lane: Type.String(),
    targetName: Type.String(),
    status: oneOf(jobStatuses),
    payload: nullable(JsonValue, {
      description: `${hidden}. Also null in a list if it cannot be decrypted; a request for that job gets 500 decryption-failed`,
    }),
    totalItems: counter(),
    doneItems: counter('Completed items only'),
    failedItems: counter(),
    attempt: counter('Leases so far'),
    maxAttempts: Int32({
      description: 'Increases by one for each attempt whose start the store may have recorded while it was unavailable',
    }),
    leaseOwner: nullable(Type.String()),
    leaseUntil: nullable(Time),
    scheduledFor: Type.Unsafe<string>({ ...Time, description: 'Earliest start' }),
    startedAt: nullable(Time),
    completedAt: nullable(Time),
    errorCode: nullable(Type.String(), {
      description:
        'Reason for the failure. For a Pending job, reason for the wait: store-unavailable, flow-throttled, flow-debounced, flow-concurrency. For a Canceled job, reason for dropping it: flow-rate-limited, flow-skipped, flow-replaced',
    }),
    errorMessage: nullable(Type.String()),
    createdAt: Time,
  },
  { title: 'JobRecord' },
);
export type JobRecord = Static<typeof JobRecord>;

const JobItemRecord = Type.Object(
  {
    id: Uuid,
    jobId: Uuid,
    seq: counter('From 0'),
    input: nullable(JsonValue, { description: hidden }),
    runId: nullable(Uuid),
    status: oneOf(['Pending', 'Completed', 'Failed']),
    error: nullable(Type.String()),
  },
  { title: 'JobItemRecord' },
);

/** Which items of a job are asked for. */
export const shownItems = ['All', 'Failed', 'None'] as const;

export const JobDetailResponse = Type.Object(
  { job: JobRecord, items: Type.Array(JobItemRecord, { description: 'In the order of seq; a queued run has none' }) },
  { title: 'JobDetailResponse' },
);
export type JobDetailResponse = Static<typeof JobDetailResponse>;
