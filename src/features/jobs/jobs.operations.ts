import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { oneOf, pagingQuery, Uuid } from '../../contract/schema.ts';
import { JobDetailResponse, JobRecord, jobStatuses, shownItems } from './jobs.schema.ts';

const read = { tag: 'Jobs', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;

export const jobOperations = defineOperations({
  list: {
    ...read,
    path: '/api/jobs',
    summary: 'List jobs, newest first',
    description:
      'Jobs are the units of work of the queue: queued runs, sweeps and what else is done in the background.',
    query: Type.Object({
      handlerKey: Type.Optional(Type.String()),
      status: Type.Optional(oneOf(jobStatuses)),
      scheduleId: Type.Optional(Uuid),
      lane: Type.Optional(Type.String()),
      background: Type.Optional(
        Type.Boolean({
          description:
            'Also jobs that the service queues for itself: webhook deliveries, online evaluation and cancellations at remote agents; always with handlerKey',
          default: true,
        }),
      ),
      ...pagingQuery,
    }),
    responses: { 200: Type.Array(JobRecord) },
    errors: [],
    cli: {
      query: { background: false },
      columns: [
        'id',
        'handlerKey',
        'targetName',
        'lane',
        'status',
        'attempt',
        'scheduledFor',
        'completedAt',
        'errorCode',
      ],
    },
  },
  get: {
    ...read,
    path: '/api/jobs/{id}',
    summary: 'Show a job with its items',
    description:
      'The answer tells how often the job was tried and how it ended, and lists the items of a job that has several. A job that is looked at again and again is asked for without them.',
    params: Type.Object({ id: Uuid }),
    query: Type.Object({
      items: Type.Optional(
        oneOf(shownItems, {
          description: 'Default All; with Failed and None the payload, which items are made of, is left out, too: null',
        }),
      ),
    }),
    responses: { 200: JobDetailResponse },
    inParts: true,
    errors: ['not-found'],
  },
  cancel: {
    tag: 'Jobs',
    role: 'Operator',
    scope: 'RunsWrite',
    method: 'POST',
    path: '/api/jobs/{id}/cancel',
    summary: 'Cancel a job; one that a worker has is asked to stop',
    description: 'A job that waits is canceled at once. One that is finished is refused.',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found', 'job-not-cancelable'],
    cli: { done: 'Canceled job {id}; one that a worker has ends soon.' },
  },
});
