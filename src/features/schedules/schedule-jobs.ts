import { createTurns } from '../../core/event-loop-turns.ts';
import type { Statement } from '../../db/statement.ts';
import type { ScheduleRow } from '../../db/tables/arriving-work.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import {
  type EnteredJobs,
  jobItemStore,
  type LaneEntry,
  type NewScheduledJob,
  nothingEntered,
  scheduledJobStore,
} from '../jobs/index.ts';
import { itemsOf } from './payload-items.rules.ts';

/** A job that a schedule makes, with the inputs of its items. */
export interface JobToQueue {
  readonly job: NewScheduledJob;
  readonly items: readonly unknown[];
}

export interface ScheduleJobSettings {
  /** Configured: of jobs whose key says no other. */
  readonly maxAttempts: number;
  readonly newId: () => string;
}

type Source = Pick<ScheduleRow, 'id' | 'tenant_id' | 'handler_key' | 'lane' | 'target_name'>;

/** `failure`: the job says why there is nothing to do, and is not worked on. */
export const jobOf = (
  schedule: Source,
  occurrence: { readonly at: number | null; readonly now: number },
  what: { readonly payload: unknown; readonly failure: NewScheduledJob['failure'] },
  { maxAttempts, newId }: ScheduleJobSettings,
): JobToQueue => {
  const items = what.failure === null ? itemsOf(what.payload) : [];
  return {
    job: {
      id: newId(),
      tenantId: schedule.tenant_id,
      scheduleId: schedule.id,
      occurrenceAt: occurrence.at,
      handlerKey: schedule.handler_key,
      lane: schedule.lane,
      targetName: schedule.target_name,
      payload: what.payload,
      totalItems: items.length,
      maxAttempts,
      now: occurrence.now,
      failure: what.failure,
    },
    items,
  };
};

// Inserts of one turn of the event loop, on a store that executes them in this thread; one message to one that does not.
const statementsAtOnce = 250;

export interface JobQueueing {
  readonly newId: () => string;
  readonly lanes: LaneEntry;
}

/** Writes jobs with their items, after what has to hold for them, as a part of a unit. One that is dropped has no items. */
export const queueJobs = async (
  stores: UnitOfWork,
  before: readonly Statement[],
  jobs: readonly JobToQueue[],
  { newId, lanes }: JobQueueing,
): Promise<EnteredJobs> => {
  const turn = createTurns();
  const inserts = { job: stores(scheduledJobStore).queued, item: stores(jobItemStore).queued };
  let statements = [...before];
  const flush = async (): Promise<void> => {
    if (statements.length > 0) await stores.write(statements);
    statements = [];
    await turn();
  };
  let { dueAt, ended, asked } = nothingEntered;
  for (const { job, items } of jobs) {
    const admission = await lanes.admit(stores, job);
    const { drop } = admission;
    statements.push(inserts.job(drop === null ? { ...job, drop } : { ...job, drop, totalItems: 0 }));
    for (const [seq, input] of drop === null ? items.entries() : []) {
      if (statements.length >= statementsAtOnce) await flush();
      statements.push(inserts.item({ id: newId(), jobId: job.id, tenantId: job.tenantId, seq, input }));
    }
    if (drop !== null || !lanes.isGuarded(job)) continue;
    await flush();
    const entered = await lanes.place(stores, job, admission);
    dueAt = Math.min(dueAt, entered.dueAt);
    ended = [...ended, ...entered.ended];
    asked = [...asked, ...entered.asked];
  }
  await flush();
  return { dueAt, ended, asked };
};
