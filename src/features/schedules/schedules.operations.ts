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
    description: 'The list includes disabled schedules.',
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
    description: 'Keys of the service itself begin with `acp.`; other keys come from modules of the host.',
    responses: { 200: Type.Array(Type.String()) },
    errors: [],
    cli: { command: 'schedules handler-keys' },
  },
  get: {
    ...read,
    path: '/api/schedules/{name}',
    summary: 'Show a schedule with its payload',
    description: 'The response shows when the schedule last queued a job and when it queues the next one.',
    params: ofName,
    responses: { 200: JobSchedule },
    errors: ['not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/schedules/{name}',
    summary: 'Create or replace a schedule',
    description:
      'An omitted property takes its default, not its earlier value. Times are local to the time zone: a time that a clock change skips does not fire, and a time that occurs twice fires once.',
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
    summary: 'Delete a schedule; its jobs remain',
    description: 'Jobs already queued from it still execute and keep its id.',
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
      'The job is queued in addition to those of the cron expression; a disabled schedule can be triggered, too. A payload in the body applies to this job only.',
    params: ofName,
    body: Type.Optional(JobTriggerRequest),
    maxBodyBytes,
    responses: { 200: JobRecord },
    errors: ['not-found', 'scheduling-disabled'],
  },
});
