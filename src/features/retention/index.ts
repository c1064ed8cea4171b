import type { Clock } from '../../core/clock.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AttachmentRow } from '../../db/tables.ts';
import type { AuditLog } from '../audit/index.ts';
import type { ArchiveSink } from './archive.ts';
import { archiveFiles } from './archive-files.ts';
import { type RetentionDefaults, targetOf } from './effective-policy.rules.ts';
import { retentionJob, retentionKey } from './retention.job.ts';
import { type RetentionTarget, retentionTargets } from './retention.schema.ts';
import { retentionService } from './retention.service.ts';
import { retentionJobStore } from './retention-jobs.store.ts';
import { retentionStore } from './retention-policies.store.ts';
import { createRetentionQueue } from './retention-queue.ts';
import { hourlyRetention } from './retention-schedule.ts';
import { createSweep, type RemoveUnit } from './sweep.ts';
import { sweepPartitions } from './sweep-partitions.store.ts';
import { sweepRemoval } from './sweep-removal.store.ts';
import { createSweepRows } from './sweep-rows.store.ts';
import { createSweepUnits } from './sweep-units.store.ts';
import { createWholeSweep } from './sweep-whole.ts';

export type { ArchiveBatch, ArchiveSink } from './archive.ts';
export { readableRow } from './readable-row.ts';

export interface RetentionDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  /** Of a module; null: the folder of the host, when there is one. */
  readonly archiveSink: ArchiveSink | null;
  /** Absolute; null: nothing is archived without a module. */
  readonly archiveFolder: string | null;
  /** Deletes a session that nothing uses and that has not been written to since; false: it stays. */
  readonly removeSession: (tenantId: string, sessionId: string, updatedAt: number) => Promise<boolean>;
  /** Deletes an attachment without a session, with its bytes; false: it stays. */
  readonly removeOrphan: (tenantId: string, attachmentId: string) => Promise<boolean>;
  readonly bytesOf: (row: AttachmentRow) => Promise<Uint8Array | null>;
  readonly messagesOf: (tenantId: string, sessionId: string) => Promise<readonly unknown[]>;
  readonly lifecycle: { readonly draining: boolean };
  readonly telemetry: Telemetry;
  readonly log: Logger;
  readonly wake: (dueAt: number) => void;
  readonly clock: Clock;
  readonly newId: () => string;
}

const dayMs = 86_400_000;
const dayOfKeys = { maxAgeDays: 1, maxRows: null, archive: false };

/** The configured defaults; that of idempotency keys has no section. */
const defaultsOf = ({ Service: { Retention } }: Config): RetentionDefaults => {
  const sections = retentionTargets
    .filter((target): target is Exclude<RetentionTarget, 'IdempotencyKeys'> => target !== 'IdempotencyKeys')
    .map((target) => {
      const { MaxAgeDays: maxAgeDays, MaxRows: maxRows, Archive: archive } = Retention[target];
      return [target, { maxAgeDays, maxRows, archive }] as const;
    });
  return { enabled: Retention.Enabled, targets: { ...Object.fromEntries(sections), IdempotencyKeys: dayOfKeys } };
};

export const retentionFeature = (deps: RetentionDeps) => {
  const { config, storage, clock, newId, lifecycle, log } = deps;
  const { now } = clock;
  const { Retention, Scheduling, DefaultTenantId } = config.Service;
  const defaults = defaultsOf(config);
  const store = storage.stores(retentionStore);
  const jobs = storage.stores(retentionJobStore);
  const units = storage.stores(createSweepUnits(now));
  const removeUnit: Readonly<Partial<Record<RetentionTarget, RemoveUnit>>> = {
    Sessions: (tenantId, { key, age }) => deps.removeSession(tenantId, key, age),
    Attachments: (tenantId, { key }) => deps.removeOrphan(tenantId, key),
  };
  const sweep = createSweep({
    storage,
    store,
    units,
    removal: storage.stores(sweepRemoval),
    rows: storage.stores(createSweepRows(deps)),
    removeUnit,
    sink: deps.archiveSink ?? (deps.archiveFolder === null ? null : archiveFiles(deps.archiveFolder, now)),
    batchSize: Retention.BatchSize,
    batchDelayMs: Retention.BatchDelay,
    telemetry: deps.telemetry,
    log,
    now,
    newId,
  });
  const queue = createRetentionQueue({
    storage,
    store: jobs,
    lane: Scheduling.LaneByHandlerKey[retentionKey] ?? 'default',
    maxAttempts: Scheduling.MaxAttempts,
    defaultTenantId: DefaultTenantId,
    wake: deps.wake,
    now,
    newId,
  });
  const { persistent } = storage;
  const enabled = Retention.Enabled && Scheduling.Enabled && persistent;
  return {
    handlers: retentionService({
      store,
      units,
      queue,
      defaults,
      audit: deps.audit,
      persistent,
      schedulingEnabled: Scheduling.Enabled,
      lifecycle,
      now,
      newId,
    }),
    jobHandlers: {
      [retentionKey]: retentionJob({
        ...{ storage, store, tenants: jobs.tenants, sweep, defaults, lifecycle, log, now, newId },
        wholeSweep: createWholeSweep({ store, units, partitions: storage.stores(sweepPartitions), log, now }),
      }),
    },
    /** What schedules have to know of sweeps. */
    schedulable: {
      key: retentionKey,
      payload: 'None',
      target: async (_tenantId: string, name: string): Promise<string | null> =>
        name === '*' ? name : (targetOf(name) ?? null),
    } as const,
    /** How long the answer of an idempotency key is given again: as a stored policy says, else a day. Null: without an end. */
    async keysKeptMs(tenantId: string): Promise<number | null> {
      const row = await store.policy(tenantId, 'IdempotencyKeys');
      const days = row === undefined ? dayOfKeys.maxAgeDays : row.enabled === 1 ? row.max_age_days : null;
      return days === null ? null : days * dayMs;
    },
    leftovers: { retentionRuns: () => store.interrupted(now()) },
    /** Of a job whose last attempt was lost. */
    lostJob: (job: { readonly id: string }): Promise<void> => store.interrupted(now(), job.id),
    /** Queues the hourly sweep. */
    schedule: hourlyRetention(queue, { enabled, log, clock }),
  };
};
