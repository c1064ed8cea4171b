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
    description: 'Jobs are the work items of the queue: queued runs, sweeps and other background work.',
    query: Type.Object({
      handlerKey: Type.Optional(Type.String()),
      status: Type.Optional(oneOf(jobStatuses)),
      scheduleId: Type.Optional(Uuid),
      lane: Type.Optional(Type.String()),
      background: Type.Optional(
        Type.Boolean({
          description:
            'Includes jobs that the service queues for itself: webhook deliveries, online evaluation and cancellations at remote agents; always included with handlerKey',
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
      'The response shows the attempts and the outcome, and the items of a job that has several. To poll a job, omit the items.',
    params: Type.Object({ id: Uuid }),
    query: Type.Object({
      items: Type.Optional(
        oneOf(shownItems, {
          description: 'Default All; with Failed or None the payload, from which items are created, is also null',
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
    summary: 'Cancel a job; a job that a worker executes is signaled to stop',
    description: 'A waiting job is canceled at once. A finished job is rejected.',
    params: Type.Object({ id: Uuid }),
    responses: { 204: null },
    errors: ['not-found', 'job-not-cancelable'],
    cli: { done: 'Canceled job {id}; one that a worker has ends soon.' },
  },
});
