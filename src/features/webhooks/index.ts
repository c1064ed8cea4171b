import { type Config, mayNameSecret, resolveSecrets } from '../../core/config/index.ts';
import type { InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { BatchedWrites } from '../../db/batched-writes.ts';
import { ConditionFailedError } from '../../db/statement.ts';
import type { Storage } from '../../db/storage.ts';
import type { JobRow } from '../../db/tables/jobs.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { createOutboundHttp } from '../../providers/http/outbound.ts';
import type { QueuedJob } from '../../scheduler/job-queue.ts';
import type { AuditLog } from '../audit/index.ts';
import { type JobStore, jobStore } from '../jobs/index.ts';
import { createJobEnds } from './job-ends.ts';
import { createReceiverPlaces } from './receiver-places.ts';
import { deliveryService } from './webhook-deliveries.service.ts';
import { deliveryKey, deliveryStore } from './webhook-deliveries.store.ts';
import { deliveryJob } from './webhook-delivery.job.ts';
import { createWebhookEvents, deliveryWrites } from './webhook-events.ts';
import { createWebhookRequest } from './webhook-request.ts';
import { createWebhookStop } from './webhook-stop.ts';
import { createWebhookTelemetry } from './webhook-telemetry.ts';
import { webhookService } from './webhooks.service.ts';
import { webhookStore } from './webhooks.store.ts';

export interface WebhooksDeps {
  readonly config: Config;
  readonly storage: Storage;
  readonly batch: Pick<BatchedWrites, 'write'>;
  readonly state: Pick<InstanceState, 'table'>;
  readonly jobs: JobStore;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly telemetry: Telemetry;
  /** Counts a target that the address rules refuse. */
  readonly egressRefused: (client: 'webhook', phase: 'save' | 'connect') => void;
  readonly log: Logger;
  readonly wake: (dueAt: number) => void;
  /** Time on which the processes of a store agree. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** Subscriptions of receivers outside, and what they are sent. */
export const webhooksFeature = (deps: WebhooksDeps) => {
  const { config, storage, jobs, audit, log, wake, now, newId } = deps;
  const { Service, Host } = config;
  const { Webhooks: settings, Egress, Scheduling, DefaultTenantId } = Service;
  const allowPrivate = Egress.AllowPrivateNetworkTargets || settings.AllowPrivateNetworkTargets;
  const names = {
    prefix: settings.AllowedConfigurationPrefix,
    defaultTenantId: DefaultTenantId,
    oneSegment: Host.Tenancy.Enabled,
  };
  const line = {
    lane: Scheduling.LaneByHandlerKey[deliveryKey] ?? 'default',
    maxAttempts: settings.RetryDelays.length + 1,
  };
  const store = storage.stores(webhookStore);
  const deliveries = storage.stores(deliveryStore);
  const secretsOf = (tenantId: string, key: string): readonly string[] =>
    mayNameSecret(names, tenantId, key) ? resolveSecrets(config, key) : [];
  const { events, listeners } = createWebhookEvents({
    ...{ state: deps.state, store, deliveries, jobs, line, wake, now, newId },
    enabled: settings.Enabled,
  });
  const http = createOutboundHttp({
    allowPrivate,
    lookupPerRequest: true,
    onRefusal: () => deps.egressRefused('webhook', 'connect'),
  });
  const rescue = (id: string): Promise<void> =>
    storage.transaction((stores) => stores(deliveryStore).rescue(id, line, now()));

  return {
    events,
    jobEnds: createJobEnds({ storage, events }),
    handlers: {
      ...webhookService({
        ...{ store, deliveries, listeners, secretsOf, audit, now, newId },
        rules: {
          names,
          allowPrivate,
          allowInsecureHttp: settings.AllowInsecureHttp,
          maxExtraHeaders: settings.MaxExtraHeaders,
        },
        targetRefused: () => deps.egressRefused('webhook', 'save'),
      }),
      ...deliveryService({
        ...{ storage, store, deliveries, line, wake, now },
        writes: deliveryWrites({ deliveries, jobs, line, now, newId }),
        settings: { enabled: settings.Enabled, schedulingEnabled: Scheduling.Enabled },
      }),
    },
    jobHandlers: {
      [deliveryKey]: deliveryJob({
        ...{ storage, deliveries, webhooks: store, secretsOf, log, now },
        write: deps.batch.write,
        begun: jobs.begun,
        request: createWebhookRequest({
          ...{ http, now },
          timeoutMs: settings.Timeout,
          maxResponseBytes: settings.MaxResponseBytes,
          allowInsecureHttp: settings.AllowInsecureHttp,
        }),
        places: createReceiverPlaces(Math.max(1, Math.floor(Scheduling.MaxConcurrentJobs / 2)), now),
        stop: createWebhookStop({ audit, listeners, now }),
        telemetry: createWebhookTelemetry(deps.telemetry),
        settings: {
          enabled: settings.Enabled,
          timeoutMs: settings.Timeout,
          retryDelaysMs: settings.RetryDelays,
          failuresToStop: settings.DisableAfterConsecutiveFailures,
        },
      }),
    },
    /** A process that is gone says nothing of the receiver: the delivery of its job is attempted again. */
    async lostJob({ id, handlerKey }: Pick<QueuedJob, 'id' | 'handlerKey'>): Promise<void> {
      if (handlerKey !== deliveryKey) return;
      await rescue(id);
      wake(now());
    },
    /** Cancels the job of a delivery with it; false when a worker took it meanwhile, or it is no such job. */
    async cancelPending({ id, handler_key: key }: Pick<JobRow, 'id' | 'handler_key'>): Promise<boolean> {
      if (key !== deliveryKey) return false;
      try {
        await storage.transaction(async (stores) => {
          await stores(jobStore).cancelPending(id, now());
          await stores(deliveryStore).canceled(id);
        });
        return true;
      } catch (error) {
        if (error instanceof ConditionFailedError) return false;
        throw error;
      }
    },
    /** Jobs are due so much earlier, and with them the deliveries among them. Part of the unit that moves them. */
    jobsMoved: (stores: UnitOfWork, ids: readonly string[], byMs: number): Promise<void> =>
      stores(deliveryStore).moveUp(ids, byMs),
    leftovers: {
      async webhookDeliveries(): Promise<void> {
        for (const id of await deliveries.stranded()) await rescue(id);
      },
    },
    close: () => http.close(),
  };
};

export type { WebhookEvents } from './webhook-events.ts';
