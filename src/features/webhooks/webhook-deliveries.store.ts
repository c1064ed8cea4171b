import { sql } from 'kysely';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import { insertStatement, preparedStatement, type Statement } from '../../db/statement.ts';
import type { WebhookDeliveryRow, WebhookRow } from '../../db/tables/arriving-work.ts';
import type { JobLease } from '../../scheduler/job-queue.ts';
import { leaseStatements } from '../jobs/index.ts';
import type { DeliveryError, DeliveryStatus } from './webhooks.schema.ts';

export const deliveryKey = 'acp.webhook-delivery';

export interface NewDelivery {
  readonly id: string;
  readonly webhookId: string;
  readonly tenantId: string;
  readonly eventType: string;
  readonly payload: string;
  readonly now: number;
}

/** A delivery with the subscription that it is for, as both are now; null: that was removed. */
export interface DueDelivery {
  readonly row: WebhookDeliveryRow;
  readonly webhook: Omit<WebhookRow, 'events' | 'labels' | 'created_at' | 'updated_at' | 'disabled_reason'> | null;
}

/** What an attempt has come to. */
export interface AttemptEnd {
  readonly status: DeliveryStatus;
  readonly error: DeliveryError | null;
  readonly responseCode: number | null;
  /** Only of one that stays pending. */
  readonly nextAttemptAt: number | null;
  readonly now: number;
}

/** How a job of deliveries is queued. */
export interface DeliveryLine {
  readonly lane: string;
  readonly maxAttempts: number;
}

export type DatedDelivery = Pick<WebhookDeliveryRow, 'id' | 'created_at'>;

export interface DeliveryRange {
  readonly from: number;
  /** Before it. */
  readonly to: number;
  readonly statuses: readonly DeliveryStatus[];
  readonly limit: number;
}

// Rows that are deleted in one statement: on SQLite nobody else writes meanwhile.
const historyAtOnce = 1000;

export const deliveryStore = defineStore((storage) => {
  const ofWebhook = (webhookId: string) =>
    storage.db.selectFrom('webhook_deliveries').selectAll().where('webhook_id', '=', webhookId);
  const pending = (id: string) =>
    storage.db.updateTable('webhook_deliveries').where('id', '=', id).where('status', '=', 'Pending');

  const delivered = preparedStatement<'id' | 'responseCode' | 'now'>((parameter) =>
    pending(parameter('id')).set((eb) => ({
      status: 'Delivered',
      error: null,
      response_code: parameter('responseCode'),
      attempt: eb('attempt', '+', 1),
      next_attempt_at: null,
      delivered_at: parameter('now'),
    })),
  );

  const { completed } = leaseStatements(storage);

  /**
   * Puts the job of a delivery in line, whether there is still one or none any more. A worker that is just about to end it
   * loses its lease, and with it its last word.
   */
  const queueAgain = async (
    { id, tenant_id, name }: { readonly id: string; readonly tenant_id: string; readonly name: string },
    { lane, maxAttempts }: DeliveryLine,
    now: number,
  ): Promise<void> => {
    const anew = {
      status: 'Pending',
      attempt: 0,
      max_attempts: maxAttempts,
      scheduled_for: now,
      payload: null,
      lease_owner: null,
      lease_until: null,
      started_at: null,
      completed_at: null,
      error_code: null,
      error_message: null,
      cancel_requested_at: null,
      cancel_requested_by: null,
    } as const;
    await storage.db
      .insertInto('jobs')
      .values({
        ...{ id, tenant_id, handler_key: deliveryKey, lane, target_name: name, created_at: now },
        ...{ schedule_id: null, occurrence_at: null, total_items: 0, done_items: 0, failed_items: 0 },
        ...{ rank: 0, line: '' },
        ...anew,
      })
      .onConflict((conflict) => conflict.column('id').doUpdateSet(anew))
      .execute();
  };

  return {
    inserted: insertStatement(storage.db, 'webhook_deliveries', (delivery: NewDelivery) => ({
      id: delivery.id,
      webhook_id: delivery.webhookId,
      tenant_id: delivery.tenantId,
      event_type: delivery.eventType,
      payload: delivery.payload,
      status: 'Pending',
      attempt: 0,
      attempts_before: 0,
      next_attempt_at: delivery.now,
      created_at: delivery.now,
    })),
    async due(id: string): Promise<DueDelivery | undefined> {
      // Cast: SQLite would prepare a statement with a join anew for every value that a column is compared with.
      const found = await storage.db
        .selectFrom('webhook_deliveries as delivery')
        .leftJoin('webhooks as webhook', (join) =>
          join.onRef('webhook.tenant_id', '=', 'delivery.tenant_id').onRef('webhook.id', '=', 'delivery.webhook_id'),
        )
        .selectAll('delivery')
        .select([
          'webhook.name',
          'webhook.url',
          'webhook.secret_key',
          'webhook.headers',
          'webhook.enabled',
          'webhook.consecutive_failures',
        ])
        .where('delivery.id', '=', sql<string>`cast(${id} as text)`)
        .executeTakeFirst();
      if (found === undefined) return undefined;
      const { name, url, secret_key, headers, enabled, consecutive_failures, ...row } = found;
      if (name === null || url === null || secret_key === null || enabled === null || consecutive_failures === null)
        return { row, webhook: null };
      const { tenant_id, webhook_id } = row;
      const webhook = { tenant_id, id: webhook_id, name, url, secret_key, headers, enabled, consecutive_failures };
      return { row, webhook };
    },
    /**
     * The attempt that has succeeded, and the end of its job. Each is without effect where the delivery is not pending, or
     * another attempt has the job.
     */
    delivered: (lease: JobLease, responseCode: number, now: number): readonly Statement[] => [
      delivered({ id: lease.id, responseCode, now }),
      completed(lease, now),
    ],
    /** False: it is not pending any more, or was removed, and nothing was changed. */
    async attempted(id: string, end: AttemptEnd): Promise<boolean> {
      const { numUpdatedRows } = await pending(id)
        .set((eb) => ({
          status: end.status,
          error: end.error,
          response_code: end.responseCode,
          attempt: eb('attempt', '+', 1),
          next_attempt_at: end.nextAttemptAt,
          delivered_at: end.status === 'Delivered' ? end.now : null,
        }))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },
    /** Ends it without an attempt. */
    async dropped(id: string, error: DeliveryError): Promise<void> {
      await pending(id).set({ status: 'Dropped', error, next_attempt_at: null }).execute();
    },
    /** Ends it because somebody canceled its job. */
    async canceled(id: string): Promise<void> {
      await pending(id).set({ status: 'Failed', next_attempt_at: null }).execute();
    },
    /** What waits of a subscription that was disabled. */
    async dropPending(webhookId: string): Promise<void> {
      await storage.db
        .updateTable('webhook_deliveries')
        .set({ status: 'Dropped', error: 'subscription-disabled', next_attempt_at: null })
        .where('webhook_id', '=', webhookId)
        .where('status', '=', 'Pending')
        .execute();
    },
    find: (webhookId: string, id: string): Promise<WebhookDeliveryRow | undefined> =>
      ofWebhook(webhookId).where('id', '=', id).executeTakeFirst(),
    /** Newest first. */
    list(
      webhookId: string,
      {
        status,
        skip,
        take,
      }: { readonly status?: DeliveryStatus | undefined; readonly skip: number; readonly take: number },
    ): Promise<readonly WebhookDeliveryRow[]> {
      const query = status === undefined ? ofWebhook(webhookId) : ofWebhook(webhookId).where('status', '=', status);
      return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(take).offset(skip).execute();
    },
    /** Oldest first. */
    inRange(webhookId: string, { from, to, statuses, limit }: DeliveryRange): Promise<readonly DatedDelivery[]> {
      return storage.db
        .selectFrom('webhook_deliveries')
        .select(['id', 'created_at'])
        .where('webhook_id', '=', webhookId)
        .where('created_at', '>=', from)
        .where('created_at', '<', to)
        .where('status', 'in', statuses)
        .orderBy('created_at')
        .orderBy('id')
        .limit(limit)
        .execute();
    },
    /** Pending again, with its attempts so far, and due; false: it is not among the subscription's any more. */
    async sendAgain(
      { id: webhookId, tenant_id, name }: Pick<WebhookRow, 'id' | 'tenant_id' | 'name'>,
      id: string,
      line: DeliveryLine,
      now: number,
    ): Promise<boolean> {
      const { numUpdatedRows } = await storage.db
        .updateTable('webhook_deliveries')
        .set((eb) => ({
          status: 'Pending',
          attempts_before: eb.ref('attempt'),
          next_attempt_at: now,
          delivered_at: null,
        }))
        .where('webhook_id', '=', webhookId)
        .where('id', '=', id)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await queueAgain({ id, tenant_id, name }, line, now);
      return true;
    },
    async dueNow(id: string, now: number): Promise<void> {
      await pending(id).set({ next_attempt_at: now }).execute();
    },
    /** Those of these jobs that wait are due so much earlier. */
    async moveUp(ids: readonly string[], byMs: number): Promise<void> {
      await storage.db
        .updateTable('webhook_deliveries')
        .set((eb) => ({ next_attempt_at: eb('next_attempt_at', '-', byMs) }))
        .where('id', 'in', ids)
        .where('status', '=', 'Pending')
        .execute();
    },
    /** Puts a pending one back in line whose job was lost with the process that had it. */
    async rescue(id: string, line: DeliveryLine, now: number): Promise<void> {
      const found = await storage.db
        .selectFrom('webhook_deliveries as delivery')
        .innerJoin('webhooks as webhook', (join) =>
          join.onRef('webhook.tenant_id', '=', 'delivery.tenant_id').onRef('webhook.id', '=', 'delivery.webhook_id'),
        )
        .select(['delivery.id', 'delivery.tenant_id', 'webhook.name'])
        .where('delivery.id', '=', id)
        .where('delivery.status', '=', 'Pending')
        .executeTakeFirst();
      if (found !== undefined) await queueAgain(found, line, now);
    },
    /** Pending ones whose job ended because the process that had it was gone. */
    async stranded(): Promise<readonly string[]> {
      const found = await storage.db
        .selectFrom('webhook_deliveries as delivery')
        .innerJoin('jobs', 'jobs.id', 'delivery.id')
        .select('delivery.id')
        .where('delivery.status', '=', 'Pending')
        .where('jobs.status', '=', 'Failed')
        .execute();
      return found.map(({ id }) => id);
    },
    /** Some of what is not pending; how many rows. */
    async removeHistory(webhookId: string): Promise<number> {
      const some = ofWebhook(webhookId)
        .clearSelect()
        .select('id')
        .where('status', '<>', 'Pending')
        .limit(historyAtOnce);
      const { numDeletedRows } = await storage.db
        .deleteFrom('webhook_deliveries')
        .where('id', 'in', some)
        .executeTakeFirst();
      return Number(numDeletedRows);
    },
    async removeOne(id: string): Promise<void> {
      await storage.db.deleteFrom('webhook_deliveries').where('id', '=', id).execute();
    },
    async removeAll(webhookId: string): Promise<void> {
      await storage.db.deleteFrom('webhook_deliveries').where('webhook_id', '=', webhookId).execute();
    },
  };
});

export type DeliveryStore = StoreOf<typeof deliveryStore>;
