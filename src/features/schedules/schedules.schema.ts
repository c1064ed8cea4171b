import Type, { type Static } from 'typebox';
import {
  closed,
  givenLanePattern,
  JsonValue,
  Labels,
  namePattern,
  nullable,
  Time,
  Uuid,
} from '../../contract/schema.ts';

const handlerKey = { minLength: 1, maxLength: 128 };
const targetName = {
  minLength: 1,
  maxLength: 128,
  description:
    'Target of the job: an agent, a retention target or `*`, or a value that the handler of a module understands',
};
const cron = {
  maxLength: 256,
  description: 'Minute, hour, day of month, month, day of week; null: the schedule starts only when it is triggered',
};
const timeZone = { description: 'IANA name of the time zone of the expression' };

export const JobSchedule = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String({ pattern: namePattern }),
    handlerKey: Type.String(handlerKey),
    lane: Type.String(),
    targetName: Type.String(targetName),
    cron: nullable(Type.String(cron)),
    timeZone: Type.String(timeZone),
    payload: nullable(JsonValue, { description: 'Also null in a list if it cannot be decrypted' }),
    enabled: Type.Boolean(),
    nextRunAt: nullable(Time, { description: 'Null while the schedule is disabled or has no cron' }),
    labels: Labels,
    lastRunAt: nullable(Time, { description: 'Time at which the schedule last queued a job, by cron or trigger' }),
    createdBy: nullable(Type.String()),
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'JobSchedule' },
);
export type JobSchedule = Static<typeof JobSchedule>;

const Payload = {
  description: 'An array creates one item per element, any other value one item; null: no items',
};

export const JobScheduleSaveRequest = closed(
  {
    handlerKey: Type.String({ ...handlerKey, description: 'One of `GET /api/schedules/handler-keys`' }),
    targetName: Type.String(targetName),
    cron: Type.Optional(nullable(Type.String(cron))),
    timeZone: Type.Optional(Type.String({ ...timeZone, default: 'UTC' })),
    lane: Type.Optional(
      nullable(
        Type.String({
          pattern: givenLanePattern,
          description: 'Null or empty: that of the handler key, else `default`',
        }),
      ),
    ),
    payload: Type.Optional(nullable(JsonValue, Payload)),
    enabled: Type.Optional(Type.Boolean({ description: 'Default true' })),
    labels: Type.Optional(Labels),
  },
  { title: 'JobScheduleSaveRequest' },
);
export type JobScheduleSaveRequest = Static<typeof JobScheduleSaveRequest>;

export const JobTriggerRequest = closed(
  {
    payload: Type.Optional(
      nullable(JsonValue, { description: 'For this job only; absent or null: the payload of the schedule' }),
    ),
  },
  { title: 'JobTriggerRequest' },
);
export type JobTriggerRequest = Static<typeof JobTriggerRequest>;
