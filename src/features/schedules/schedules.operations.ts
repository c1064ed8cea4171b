import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import { JobRecord } from '../jobs/jobs.schema.ts';
import { JobSchedule, JobScheduleSaveRequest, JobTriggerRequest } from './schedules.schema.ts';

const read = { tag: 'Schedules', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Schedules', role: 'Admin', scope: 'PlatformAdmin' } as const;

const ofName = Type.Object({ name: Type.String() });
/** A payload may have thousands of items. */
const maxBodyBytes = 16_777_216;

export const scheduleOperations = defineOperations({
  list: {
    ...read,
    path: '/api/schedules',
    summary: 'List the schedules, by name',
    description: 'Every schedule of the tenant is listed, also one that is disabled.',
    responses: { 200: Type.Array(JobSchedule) },
    errors: [],
    cli: {
      columns: ['name', 'handlerKey', 'targetName', 'cron', 'timeZone', 'enabled', 'nextRunAt', 'lastRunAt'],
    },
  },
  handlerKeys: {
    ...read,
    path: '/api/schedules/handler-keys',
    summary: 'List the kinds of jobs that schedules may start',
    description: 'Keys of the service itself begin with `acp.`; the others are those of the modules of the host.',
    responses: { 200: Type.Array(Type.String()) },
    errors: [],
    cli: { command: 'schedules handler-keys' },
  },
  get: {
    ...read,
    path: '/api/schedules/{name}',
    summary: 'Show a schedule with its payload',
    description: 'The answer tells when a job comes of it next, and when one came last.',
    params: ofName,
    responses: { 200: JobSchedule },
    errors: ['not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/schedules/{name}',
    summary: 'Create a schedule, or replace it whole',
    description:
      'What is left out takes its default and not the earlier value. Times are of the wall clock of the zone: one that a clock change skips does not fire, and one that comes twice fires once.',
    params: ofName,
    query: SaveQuery,
    body: JobScheduleSaveRequest,
    maxBodyBytes,
    responses: { 200: JobSchedule },
    errors: ['scheduling-disabled', 'version-conflict'],
    audit: { action: 'schedule.save', entity: 'schedule', mode: 'noted' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/schedules/{name}',
    summary: 'Delete a schedule; its jobs stay',
    description: 'Jobs that were queued from it are worked on all the same, and keep its id.',
    params: ofName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'schedule.delete', entity: 'schedule', mode: 'noted' },
    cli: { command: 'schedules delete', done: 'Deleted schedule {name}.' },
  },
  trigger: {
    tag: 'Schedules',
    role: 'Operator',
    scope: 'RunsWrite',
    method: 'POST',
    path: '/api/schedules/{name}/trigger',
    summary: 'Queue a job from a schedule now',
    description:
      'The job is queued beside those of the cron, which fire as before; a disabled schedule can be triggered, too. A payload in the body is for this job alone.',
    params: ofName,
    body: Type.Optional(JobTriggerRequest),
    maxBodyBytes,
    responses: { 200: JobRecord },
    errors: ['not-found', 'scheduling-disabled'],
  },
});
