import { AcpError } from '../../contract/errors.ts';
import { ok } from '../../contract/operation.ts';
import { clampPaging } from '../../contract/schema.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime, isoTimeOrNull } from '../../core/iso-time.ts';
import type { Storage } from '../../db/storage.ts';
import type { WebhookDeliveryRow, WebhookRow } from '../../db/tables/arriving-work.ts';
import { jobStore } from '../jobs/index.ts';
import {
  type DeliveryLine,
  type DeliveryRange,
  type DeliveryStore,
  deliveryStore,
} from './webhook-deliveries.store.ts';
import type { deliveryWrites } from './webhook-events.ts';
import type { webhookOperations } from './webhooks.operations.ts';
import type { DeliveryError, DeliveryStatus, WebhookDelivery, WebhookEventType } from './webhooks.schema.ts';
import { noWebhook } from './webhooks.service.ts';
import type { WebhookStore } from './webhooks.store.ts';

export interface DeliveryServiceDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly store: Pick<WebhookStore, 'find'>;
  readonly deliveries: DeliveryStore;
  readonly writes: ReturnType<typeof deliveryWrites>;
  readonly line: DeliveryLine;
  readonly wake: (dueAt: number) => void;
  readonly settings: { readonly enabled: boolean; readonly schedulingEnabled: boolean };
  readonly now: () => number;
}

type DeliveryHandlers = Pick<Handlers<typeof webhookOperations>, 'test' | 'deliveries' | 'retry' | 'retryRange'>;

// What one request puts back in line; the answer says whether there is more.
const mostAtOnce = 1000;
// More than are made in a millisecond.
const mostOfMoment = 10_000;
// So that other writers have their turn between two units.
const perUnit = 100;

const toDelivery = (row: WebhookDeliveryRow): WebhookDelivery => ({
  id: row.id,
  subscriptionId: row.webhook_id,
  tenantId: row.tenant_id,
  eventType: row.event_type as WebhookEventType,
  payload: row.payload,
  status: row.status as DeliveryStatus,
  attempt: row.attempt,
  responseCode: row.response_code,
  error: row.error as DeliveryError | null,
  nextAttemptAt: isoTimeOrNull(row.next_attempt_at),
  createdAt: isoTime(row.created_at),
  deliveredAt: isoTimeOrNull(row.delivered_at),
});

/** Deliveries as operators see them, have them tried and sent again. */
export const deliveryService = (deps: DeliveryServiceDeps): DeliveryHandlers => {
  const { storage, store, deliveries, settings, now } = deps;

  const find = async (tenantId: string, name: string): Promise<WebhookRow> => {
    const row = await store.find(tenantId, name);
    if (row === undefined) throw noWebhook(name);
    return row;
  };
  const requireQueue = (): void => {
    if (!settings.schedulingEnabled)
      throw new AcpError('scheduling-disabled', 'The job queue is switched off, and deliveries are jobs.');
  };
  /** One whose deliveries would not be dropped. */
  const findEnabled = async (tenantId: string, name: string): Promise<WebhookRow> => {
    const row = await find(tenantId, name);
    requireQueue();
    if (row.enabled === 1) return row;
    throw new AcpError('webhook-disabled', `The webhook "${name}" is disabled; its deliveries would not be sent.`);
  };

  /**
   * The first ones of a range, and from when on the next request finds those behind them; null: there are none. What is sent
   * again may be of the same status once more before that request comes, so the status alone would not get it on.
   */
  const taken = async (webhookId: string, range: Omit<DeliveryRange, 'limit'>) => {
    const found = await deliveries.inRange(webhookId, { ...range, limit: mostAtOnce + 1 });
    const first = found.slice(0, mostAtOnce);
    const last = first.at(-1);
    if (last === undefined || found.length === first.length) return { ids: first.map(({ id }) => id), nextFrom: null };
    const nextFrom = last.created_at + 1;
    // Those of one moment stay together.
    const moment = { ...range, from: last.created_at, to: Math.min(nextFrom, range.to), limit: mostOfMoment };
    const together = await deliveries.inRange(webhookId, moment);
    const [behind] = await deliveries.inRange(webhookId, { ...range, from: nextFrom, limit: 1 });
    const ids = [...new Set([...first, ...together].map(({ id }) => id))];
    return { ids, nextFrom: behind === undefined ? null : nextFrom };
  };

  return {
    async test({ tenantId }, { params: { name } }) {
      const row = await find(tenantId, name);
      requireQueue();
      const idle = (message: string) => ok({ name, queued: false, message, deliveryId: null });
      if (!settings.enabled) return idle('Webhooks are switched off (Service:Webhooks:Enabled).');
      if (row.enabled !== 1) return idle('The webhook is disabled.');
      const at = now();
      const { id, statements } = deps.writes(row, 'webhook.test', at, { name });
      await storage.transaction((stores) => stores.write(statements));
      deps.wake(at);
      return ok({ name, queued: true, message: 'The delivery was queued.', deliveryId: id });
    },

    async deliveries({ tenantId }, { params: { name }, query }) {
      const row = await find(tenantId, name);
      const rows = await deliveries.list(row.id, { status: query.status, ...clampPaging(query) });
      return ok(rows.map(toDelivery));
    },

    async retry({ tenantId }, { params }) {
      const webhook = await findEnabled(tenantId, params.name);
      const id = params.id.toLowerCase();
      const at = now();
      const row = await storage.transaction(async (stores) => {
        const inUnit = stores(deliveryStore);
        const before = await inUnit.find(webhook.id, id);
        // One that is in line only has to be due; a worker that has it is left to its attempt.
        if (before?.status === 'Pending') await stores(jobStore).due(id, at);
        if (before?.status === 'Pending') await inUnit.dueNow(id, at);
        else if (!(await inUnit.sendAgain(webhook, id, deps.line, at))) return undefined;
        return inUnit.find(webhook.id, id);
      });
      if (row === undefined) throw new AcpError('not-found', 'The webhook has no delivery with this id.');
      deps.wake(at);
      return ok(toDelivery(row));
    },

    async retryRange({ tenantId }, { params: { name }, body }) {
      const webhook = await findEnabled(tenantId, name);
      const at = now();
      const { ids, nextFrom } = await taken(webhook.id, {
        from: Date.parse(body.from),
        to: body.to === undefined || body.to === null ? at : Date.parse(body.to),
        statuses: body.statuses ?? ['Failed', 'Dropped'],
      });
      let queued = 0;
      for (let from = 0; from < ids.length; from += perUnit) {
        queued += await storage.transaction(async (stores) => {
          const inUnit = stores(deliveryStore);
          let again = 0;
          for (const id of ids.slice(from, from + perUnit))
            if (await inUnit.sendAgain(webhook, id, deps.line, at)) again += 1;
          return again;
        });
        deps.wake(at);
      }
      return ok({ name, queued, more: nextFrom !== null, nextFrom: isoTimeOrNull(nextFrom) });
    },
  };
};
