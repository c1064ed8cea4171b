import type { Json } from '../../contract/schema.ts';
import type { Logger } from '../../core/logger.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import {
  JobCanceledError,
  type JobHandler,
  type JobResult,
  LeaseLostError,
  type QueuedJob,
} from '../../scheduler/job-queue.ts';
import { itemPages } from './item-pages.ts';
import { itemsOutcome } from './items-outcome.ts';
import type { JobItem, JobItemEnd, JobItemStore } from './job-items.store.ts';

/** One item of a module's job. An earlier attempt may have ended it: delivery is at least once. */
export interface ModuleJobItem {
  /** From 0. */
  readonly seq: number;
  readonly input: Json;
  readonly status: 'Pending' | 'Completed' | 'Failed';
  /** Ends the item. Throws once another worker has the job. */
  complete(): Promise<void>;
  /** Ends the item; the message is shown with it, at most 1000 characters of it. */
  fail(message: string): Promise<void>;
}

/** One attempt at a job, as the module that works on it sees it. */
export interface ModuleJob {
  /** UUID; that of every attempt. */
  readonly id: string;
  readonly tenantId: string;
  readonly key: string;
  readonly lane: string;
  readonly targetName: string;
  /** As the schedule or who triggered it has it: an array where there are several items; null where there are none. */
  readonly payload: Json;
  /** From 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** All items in the order of `seq`, read as they are asked for; ends early once the job is to stop. */
  items(): AsyncIterable<ModuleJobItem>;
}

/** How an attempt ended. Without one it has completed, and with it every item that is still Pending. */
export type ModuleJobResult =
  | { readonly status: 'Completed' }
  | {
      readonly status: 'Failed';
      /** Kebab case, at most 64 characters; shown as the job's `errorCode` once no attempt is left. */
      readonly code: string;
      /** Shown as `errorMessage`, at most 1000 characters of it. */
      readonly message: string;
      /** No further attempt, whatever is left. */
      readonly final?: boolean;
      /** Until the next attempt, in milliseconds; default: doubling from 10 s. */
      readonly retryAfterMs?: number;
    };

/** Work of a module that schedules start. */
export interface ModuleJobHandler {
  /** 1 to 128 of `a-z 0-9 . _ -`, a letter or digit first, and not beginning with `acp.`; unique among the modules of a host. */
  readonly key: string;
  /** False: no schedule may name it, unless `Scheduling:SchedulableHandlerKeys` does. Default: true. */
  readonly schedulable?: boolean;
  /** The signal is aborted when the job is canceled, another worker has it, or the process ends. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing has no other type.
  run(job: ModuleJob, signal: AbortSignal): Promise<ModuleJobResult | void>;
}

export interface ModuleJobDeps {
  readonly items: JobItemStore;
  /** Aborted when what is in progress has had its time to end. */
  readonly ending: AbortSignal;
  readonly log: Pick<Logger, 'error'>;
  readonly newId: () => string;
}

// The module's own work once it is to stop.
const graceMs = 5000;
const maxText = 1000;
const codePattern = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** What a unit that asserts the lease of a job was refused for, in the words of the queue. */
export const notHeld = (error: unknown): unknown =>
  error instanceof ConditionFailedError ? new LeaseLostError() : error;

const failure = (code: string, message: string): JobResult => ({ status: 'Failed', code, message });

/** Any value: a module is not type-checked at run time. */
const resultOf = (answer: unknown): Exclude<JobResult, { status: 'Released' | 'Requeued' }> | null => {
  if (answer === undefined || answer === null) return { status: 'Completed' };
  const { status, code, message, final, retryAfterMs } = answer as Readonly<Record<string, unknown>>;
  if (status === 'Completed') return { status };
  if (status !== 'Failed' || typeof code !== 'string' || code.length > 64 || !codePattern.test(code)) return null;
  if (typeof message !== 'string' || message === '') return null;
  return {
    status,
    code,
    message: message.slice(0, maxText),
    ...(final === true ? { final } : {}),
    ...(typeof retryAfterMs === 'number' && retryAfterMs >= 0 && Number.isFinite(retryAfterMs) ? { retryAfterMs } : {}),
  };
};

/** The end of the work; null when it does not come within a moment after the signal. What comes later is dropped. */
const endUnlessStopped = async <T>(signal: AbortSignal, work: Promise<T>): Promise<T | null> => {
  const { promise: late, resolve } = Promise.withResolvers<null>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(resolve, graceMs, null);
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
};

/** What a worker does with the jobs of a module's handler. */
export const moduleJobHandler = (handler: ModuleJobHandler, deps: ModuleJobDeps): JobHandler => {
  const { items } = deps;

  /** A foreign error is for the log alone: it may hold what the tenant must not see. */
  const foreign = (job: QueuedJob, error: unknown): JobResult => {
    const reference = deps.newId();
    deps.log.error(
      { jobId: job.id, tenantId: job.tenantId, handlerKey: job.handlerKey, reference, error },
      'The handler of a module failed',
    );
    const kind = error instanceof Error ? error.name : typeof error;
    return failure('handler-failed', `The handler failed with ${kind}; the log tells more under ${reference}.`);
  };

  const viewOf = (job: QueuedJob, item: JobItem): ModuleJobItem => {
    const end = async (how: JobItemEnd): Promise<void> => {
      await items.end(job, item.seq, how).catch((error: unknown) => {
        throw notHeld(error);
      });
    };
    return {
      seq: item.seq,
      input: item.input as Json,
      status: item.status,
      complete: () => end({ status: 'Completed', runId: null, error: null }),
      fail: (message) => end({ status: 'Failed', runId: null, error: String(message).slice(0, maxText) }),
    };
  };

  const work = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    const { id, tenantId, handlerKey: key, lane, targetName, payload, attempt, maxAttempts } = job;
    const answer = await handler.run(
      {
        ...{ id, tenantId, key, lane, targetName, attempt, maxAttempts },
        payload: payload as Json,
        async *items() {
          const next = itemPages(items, job, { pending: false, stopped: () => signal.aborted });
          for (let item = await next(); item !== null; item = await next()) {
            if (!item.isReadable) await viewOf(job, item).fail('decryption-failed: The input cannot be decrypted.');
            else yield viewOf(job, item);
          }
        },
      },
      signal,
    );
    // Whoever returns nothing because of the signal has not finished.
    if ((answer === undefined || answer === null) && signal.aborted) throw signal.reason;
    const result = resultOf(answer);
    if (result === null) return foreign(job, new TypeError(`The handler of ${key} returned what is no result.`));
    if (result.status !== 'Completed') return result;
    if ((await items.counts(id)).total === 0) return result;
    await items.completeRest(job).catch((error: unknown) => {
      throw notHeld(error);
    });
    return itemsOutcome(items, job);
  };

  /** What the end of a signal means, where the handler heeded it or did not come to an end by itself. */
  const stopped = (job: QueuedJob, signal: AbortSignal): JobResult => {
    if (signal.reason instanceof LeaseLostError) throw signal.reason;
    if (signal.reason instanceof JobCanceledError) return { status: 'Canceled' };
    if (job.attempt < job.maxAttempts) return { status: 'Released' };
    const message = 'The service stopped before the job had finished.';
    return { status: 'Failed', code: 'shutdown', message, final: true };
  };

  return async (job, cancel) => {
    const signal = AbortSignal.any([cancel, deps.ending]);
    const done = work(job, signal);
    try {
      return (await endUnlessStopped(signal, done)) ?? stopped(job, signal);
    } catch (error) {
      if (error instanceof LeaseLostError) throw error;
      return signal.aborted ? stopped(job, signal) : foreign(job, error);
    }
  };
};
