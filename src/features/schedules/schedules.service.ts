import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import { type Json, namePattern } from '../../contract/schema.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { ScheduleRow } from '../../db/tables/arriving-work.ts';
import type { AuditLog } from '../audit/index.ts';
import { type EnteredJobs, jobStore, toJobRecord } from '../jobs/index.ts';
import { firstOccurrence, readTimeZone } from './occurrences.rules.ts';
import { checkPayload } from './payload-items.rules.ts';
import { type JobQueueing, jobOf, queueJobs, type ScheduleJobSettings } from './schedule-jobs.ts';
import type { SchedulableKey, ScheduleKeys } from './schedule-keys.ts';
import type { scheduleOperations } from './schedules.operations.ts';
import type { JobSchedule, JobScheduleSaveRequest } from './schedules.schema.ts';
import { type ScheduleStore, scheduleStore } from './schedules.store.ts';

export interface ScheduleServiceDeps extends ScheduleJobSettings, JobQueueing {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: ScheduleStore;
  readonly keys: ScheduleKeys;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  /** False: nothing is queued. */
  readonly enabled: boolean;
  readonly maxItems: number;
  readonly laneByHandlerKey: Readonly<Record<string, string>>;
  /** Path in front of every operation, for `Location`. */
  readonly prefix: string;
  /** Called when a schedule is stored that is due then. */
  readonly planned: (dueAt: number) => void;
  /** Called once jobs are stored: workers look for those that are due, and end those that have to. */
  readonly entered: (dueAt: number, jobs: EnteredJobs) => Promise<void>;
  readonly log: Pick<Logger, 'warn'>;
  /** Of the store. */
  readonly now: () => number;
}

const name = new RegExp(namePattern);
/** The path of the list of keys. */
const reservedName = 'handler-keys';

const parsed = (payload: string | null): unknown => (payload === null ? null : (JSON.parse(payload) as unknown));

const toSchedule = (row: ScheduleRow): JobSchedule => ({
  id: row.id,
  tenantId: row.tenant_id,
  name: row.name,
  handlerKey: row.handler_key,
  lane: row.lane,
  targetName: row.target_name,
  cron: row.cron,
  timeZone: row.time_zone,
  payload: parsed(row.payload) as Json,
  enabled: row.enabled === 1,
  nextRunAt: isoTimeOrNull(row.next_run_at),
  labels: labelsOf(row),
  lastRunAt: isoTimeOrNull(row.last_run_at),
  createdBy: row.created_by,
  createdAt: isoTime(row.created_at),
  updatedAt: isoTime(row.updated_at),
});

/** For the audit trail, which is not encrypted: whether the payload has changed, and never what it is. */
const toAudited = (row: ScheduleRow) => {
  const { payload, ...schedule } = toSchedule(row);
  const payloadSha256 = payload === null ? null : createHash('sha256').update(JSON.stringify(payload)).digest('hex');
  return { ...schedule, payloadSha256 };
};

const notFound = (): AcpError => new AcpError('not-found', 'There is no schedule with this name.');

type Rule = Pick<
  ScheduleRow,
  'handler_key' | 'lane' | 'target_name' | 'cron' | 'time_zone' | 'payload' | 'enabled' | 'labels'
>;

const isSame = (row: ScheduleRow, rule: Rule): boolean =>
  isDeepStrictEqual({ ...row, ...rule, payload: parsed(rule.payload) }, { ...row, payload: parsed(row.payload) });

/** It fires as it did: what is due by now is not lost to a save that leaves its times alone. */
const keepsTimes = (row: ScheduleRow, rule: Rule): boolean =>
  row.cron === rule.cron && row.time_zone === rule.time_zone && row.enabled === rule.enabled;

/** What saving leaves alone. */
const kept = (before: ScheduleRow | undefined): Partial<ScheduleRow> => {
  if (before === undefined) return {};
  const { id, created_by, created_at, last_run_at } = before;
  return { id, created_by, created_at, last_run_at };
};

export const scheduleService = (deps: ScheduleServiceDeps): Handlers<typeof scheduleOperations> => {
  const { store, keys, now } = deps;

  const assertEnabled = (): void => {
    if (!deps.enabled) throw new AcpError('scheduling-disabled', 'The job queue is switched off.');
  };

  const keyOf = (handlerKey: string): SchedulableKey => {
    const key = keys.get(handlerKey);
    if (key !== undefined) return key;
    throw invalidField('handlerKey', `must be one of ${keys.list.join(', ')}`);
  };

  const ruleOf = async (tenantId: string, body: JobScheduleSaveRequest): Promise<Rule> => {
    const { handlerKey, cron = null, timeZone = 'UTC', payload = null, enabled = true } = body;
    const key = keyOf(handlerKey);
    const zone = readTimeZone(timeZone);
    if (cron !== null) firstOccurrence({ cron, timeZone: zone }, now());
    await checkPayload(payload, key, deps.maxItems);
    const target = await key.target(tenantId, body.targetName);
    if (target === null) throw invalidField('targetName', 'does not exist');
    const lane = body.lane ?? '';
    return {
      handler_key: handlerKey,
      lane: lane === '' ? (deps.laneByHandlerKey[handlerKey] ?? 'default') : lane,
      target_name: target,
      cron,
      time_zone: zone,
      payload: payload === null ? null : JSON.stringify(payload),
      enabled: enabled ? 1 : 0,
      labels: labelsText(body.labels),
    };
  };

  const nextRunAt = ({ cron, time_zone: timeZone, enabled }: Rule): number | null =>
    cron === null || enabled === 0 ? null : firstOccurrence({ cron, timeZone }, now());

  return {
    async list({ tenantId }) {
      const rows = await store.list(tenantId);
      const unreadable = rows.filter(({ isReadable }) => !isReadable).length;
      if (unreadable > 0)
        deps.log.warn({ tenantId, schedules: unreadable }, 'Listed schedules lack payloads that cannot be decrypted');
      return ok(rows.map(toSchedule));
    },

    async handlerKeys() {
      return ok([...keys.list]);
    },

    async get({ tenantId }, { params }) {
      const row = await store.get(tenantId, params.name);
      if (row === undefined) throw notFound();
      return ok(toSchedule(row));
    },

    async save(context, { params, query, body }) {
      const { tenantId, principal } = context;
      assertEnabled();
      if (!name.test(params.name)) throw invalidField('name', 'must be 1 to 128 of A-Z a-z 0-9 . _ -');
      if (params.name === reservedName) throw invalidField('name', 'is the name of another resource');
      const rule = await ruleOf(tenantId, body);
      const saved = await deps.audit.save(context, query, async (stores, tell) => {
        const schedules = stores(scheduleStore);
        // One that cannot be decrypted is replaced like any other.
        const before = await schedules.find(tenantId, params.name);
        if (before !== undefined) {
          const { isReadable, ...row } = before;
          if (isReadable && isSame(row, rule)) return row;
        }
        assertExpected(query, before?.updated_at);
        const at = now();
        const keeps = before !== undefined && keepsTimes(before, rule);
        const row: ScheduleRow = {
          tenant_id: tenantId,
          name: params.name,
          id: deps.newId(),
          ...rule,
          next_run_at: keeps ? before.next_run_at : nextRunAt(rule),
          last_run_at: null,
          created_by: principal.actor,
          created_at: at,
          updated_at: at,
        };
        if (query.dryRun === true) return { ...row, ...kept(before) };
        const after = await schedules.save(row);
        const shown = before === undefined ? null : toAudited(before);
        tell({ id: params.name, before: shown, after: toAudited(after) });
        return after;
      });
      if (query.dryRun !== true && saved.next_run_at !== null) deps.planned(saved.next_run_at);
      return ok(toSchedule(saved));
    },

    async remove(context, { params }) {
      const { tenantId } = context;
      await deps.audit.change(context, async (stores, tell) => {
        const schedules = stores(scheduleStore);
        const before = await schedules.find(tenantId, params.name);
        if (before === undefined || !(await schedules.remove(tenantId, params.name))) throw notFound();
        tell({ id: params.name, before: toAudited(before), after: null });
      });
      return noContent();
    },

    async trigger({ tenantId }, { params, body }) {
      assertEnabled();
      const schedule = await store.get(tenantId, params.name);
      if (schedule === undefined) throw notFound();
      const own = body?.payload ?? null;
      const payload = own ?? parsed(schedule.payload);
      const key = keys.get(schedule.handler_key);
      // Of a key that schedules may not name any more: the worker says what there is to say.
      if (key !== undefined) await checkPayload(payload, key, deps.maxItems);
      const at = now();
      const queued = jobOf(schedule, { at: null, now: at }, { payload, failure: null }, deps);
      const { row, jobs } = await deps.storage
        .transaction(async (stores) => {
          const triggered = stores(scheduleStore).triggered(schedule, at);
          const entered = await queueJobs(stores, [triggered], [queued], deps);
          return { row: await stores(jobStore).get(queued.job.id), jobs: entered };
        }, deps.lanes.lineOf(queued.job))
        .catch((error: unknown) => {
          throw error instanceof ConditionFailedError ? notFound() : error;
        });
      if (row === undefined) throw notFound();
      await deps.entered(at, jobs);
      return ok(toJobRecord(row, payload), { Location: `${deps.prefix}/api/jobs/${row.id}` });
    },
  };
};
