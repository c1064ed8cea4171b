import type { Logger } from '../../core/logger.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import type { Statement } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import {
  JobCanceledError,
  type JobHandler,
  type JobLease,
  type JobResult,
  type QueuedJob,
} from '../../scheduler/job-queue.ts';
import { jobStore, notHeld } from '../jobs/index.ts';
import type { ReceiverPlaces } from './receiver-places.ts';
import { type AttemptEnd, type DeliveryStore, type DueDelivery, deliveryStore } from './webhook-deliveries.store.ts';
import type { AttemptResult, WebhookRequest } from './webhook-request.ts';
import type { WebhookStop } from './webhook-stop.ts';
import type { WebhookTelemetry } from './webhook-telemetry.ts';
import { nextDelayMs } from './webhooks.rules.ts';
import { type WebhookStore, webhookStore } from './webhooks.store.ts';

export interface DeliveryJobDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly deliveries: DeliveryStore;
  /** Deliveries that begin or end in the same moment share a commit. */
  readonly write: BatchedWrites['write'];
  /** Fails its unit unless the attempt still has the job. */
  readonly begun: (lease: JobLease) => Statement;
  readonly webhooks: WebhookStore;
  readonly request: WebhookRequest;
  readonly places: ReceiverPlaces;
  readonly stop: WebhookStop;
  /** Of a key that the tenant may name; empty: it has no value now. Newest first. */
  secretsOf(tenantId: string, key: string): readonly string[];
  readonly telemetry: WebhookTelemetry;
  readonly settings: {
    readonly enabled: boolean;
    readonly timeoutMs: number;
    readonly retryDelaysMs: readonly number[];
    readonly failuresToStop: number;
  };
  readonly log: Pick<Logger, 'debug' | 'warn' | 'error'>;
  readonly now: () => number;
}

type Target = DueDelivery & { readonly webhook: NonNullable<DueDelivery['webhook']> };
type Failure = Extract<AttemptResult, { kind: 'failed' }>;

// While deliveries are switched off they wait for the next start, which looks at the settings again.
const offForMs = 60_000;
// The store or the key of encrypted headers may be back by then.
const brokenForMs = 10_000;

const gone = 410;

const completed: JobResult = { status: 'Completed' };
const failed = (code: string): JobResult => ({
  status: 'Failed',
  code,
  message: 'The delivery has failed; the deliveries of the webhook tell more.',
  final: true,
});

/** One attempt at a delivery. The row decides: an attempt is made of a pending one, and counts where it still is pending then. */
export const deliveryJob = (deps: DeliveryJobDeps): JobHandler => {
  const { storage, deliveries, webhooks, request, places, stop, telemetry, settings, log, now } = deps;

  const delivered = async (job: QueuedJob, { row, webhook }: Target, status: number): Promise<JobResult> => {
    const at = now();
    // Most receivers have no failure to be forgiven.
    if (webhook.consecutive_failures === 0) {
      await deps.write(deliveries.delivered(job, status, at));
      return { status: 'Completed', isStored: true };
    }
    const end: AttemptEnd = { status: 'Delivered', error: null, responseCode: status, nextAttemptAt: null, now: at };
    await storage.transaction(async (stores) => {
      if (await stores(deliveryStore).attempted(row.id, end))
        await stores(webhookStore).succeeded(row.tenant_id, webhook.id);
    }, webhook.id);
    return completed;
  };

  /** An attempt that was no success; how many failures there are in a row, null: the delivery was not pending any more. */
  const count = async (
    stores: UnitOfWork,
    { row, webhook }: Target,
    end: AttemptEnd,
    again: { readonly job: QueuedJob; readonly at: number } | null,
  ): Promise<number | null> => {
    if (!(await stores(deliveryStore).attempted(row.id, end))) return null;
    if (again !== null) await stores.write([stores(jobStore).retried(again.job.id, again.job.attempt, again.at)]);
    return stores(webhookStore).failed(row.tenant_id, webhook.id);
  };

  /** False: the delivery was not pending any more. */
  const settle = async (
    target: Target,
    end: AttemptEnd,
    again: { readonly job: QueuedJob; readonly at: number } | null,
  ): Promise<boolean> => {
    const { webhook } = target;
    const failures = await storage.transaction((stores) => count(stores, target, end, again), webhook.id);
    if (end.responseCode === gone) await stop(webhook, 'Gone');
    else if (failures !== null && failures >= settings.failuresToStop) await stop(webhook, 'ConsecutiveFailures');
    return failures !== null;
  };

  const about = ({ row, webhook }: Target) => ({
    tenantId: row.tenant_id,
    webhook: webhook.name,
    deliveryId: row.id,
    event: row.event_type,
  });

  const refused = async (target: Target, cause: unknown): Promise<JobResult> => {
    log.warn({ ...about(target), error: cause }, 'A delivery was dropped: the address rules refuse its target');
    const error = 'target-not-allowed';
    await settle(target, { status: 'Dropped', error, responseCode: null, nextAttemptAt: null, now: now() }, null);
    return failed(error);
  };

  const failedOnce = async (job: QueuedJob, target: Target, result: Failure): Promise<'retry' | 'failed'> => {
    const { row } = target;
    const { error, status: responseCode, cause } = result;
    const attempt = row.attempt + 1 - row.attempts_before;
    const delay = responseCode === gone ? null : nextDelayMs(attempt, settings.retryDelaysMs, result.retryAfterMs);
    const at = now();
    const nextAttemptAt = delay === null ? null : at + delay;
    const status = delay === null ? 'Failed' : 'Pending';
    const again = nextAttemptAt === null ? null : { job, at: nextAttemptAt };
    const isPending =
      (await settle(target, { status, error, responseCode, nextAttemptAt, now: at }, again)) && delay !== null;
    const told = { ...about(target), attempt: row.attempt + 1, error, status: responseCode, cause };
    if (isPending) log.debug(told, 'An attempt at a delivery has failed');
    else log.warn(told, 'A delivery has failed');
    return isPending ? 'retry' : 'failed';
  };

  /** Extra headers, null where they cannot be decrypted now. */
  const headersOf = (target: Target): Readonly<Record<string, string>> | null => {
    try {
      return webhooks.headersOf(target.webhook);
    } catch (error) {
      log.error({ ...about(target), error }, 'The headers of a webhook cannot be read');
      return null;
    }
  };

  const attempt = async (job: QueuedJob, target: Target, signal: AbortSignal): Promise<JobResult> => {
    const { row, webhook } = target;
    const headers = headersOf(target);
    const secrets = headers === null ? [] : deps.secretsOf(row.tenant_id, webhook.secret_key);
    const told = telemetry.began(row, webhook.url, job.trace ?? null);
    const message = { id: row.id, url: webhook.url, body: row.payload, headers: headers ?? {}, secrets };
    const result = await request(message, signal);
    switch (result.kind) {
      case 'delivered':
        told('delivered', result.status, null);
        return delivered(job, target, result.status);
      case 'refused':
        told('dropped', null, 'target-not-allowed');
        return refused(target, result.cause);
      case 'failed': {
        const outcome = await failedOnce(job, target, result);
        told(outcome, result.status, result.error);
        return outcome === 'retry' ? { status: 'Requeued' } : failed(result.error);
      }
      case 'stopped':
        return stopped(job, signal);
    }
  };

  /** Somebody canceled the job, or another worker has it by now. */
  const stopped = async (job: QueuedJob, signal: AbortSignal): Promise<JobResult> => {
    if (!(signal.reason instanceof JobCanceledError)) return { status: 'Released' };
    await deliveries.canceled(job.id);
    return { status: 'Canceled' };
  };

  const work: JobHandler = async (job, signal) => {
    if (signal.aborted) return stopped(job, signal);
    const due = await deliveries.due(job.id);
    if (due === undefined || due.row.status !== 'Pending') return completed;
    const { row, webhook } = due;
    // Published by a process that had not heard of the removal.
    if (webhook === null) {
      await deliveries.removeOne(row.id);
      return completed;
    }
    if (webhook.enabled !== 1) {
      await deliveries.dropped(row.id, 'subscription-disabled');
      return failed('subscription-disabled');
    }
    const release = places.take(webhook.id);
    if (release === null) return { status: 'Released', afterMs: settings.timeoutMs };
    try {
      return await attempt(job, { row, webhook }, signal);
    } finally {
      release();
    }
  };

  const deliver: JobHandler = async (job, signal) => {
    if (!settings.enabled) return { status: 'Released', afterMs: offForMs };
    await deps.write([deps.begun(job)]).catch((error: unknown) => {
      throw notHeld(error);
    });
    try {
      return await work(job, signal);
    } catch (error) {
      // No fault of the receiver: the attempt does not count, and the delivery is not lost.
      log.error({ jobId: job.id, tenantId: job.tenantId, error }, 'A delivery could not be attempted');
      return { status: 'Released', afterMs: brokenForMs };
    }
  };
  return Object.assign(deliver, { begins: true } as const);
};
