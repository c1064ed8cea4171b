import type { AuditedCall } from '../../core/context.ts';
import type { WebhookRow } from '../../db/tables/arriving-work.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import type { AuditLog, TellChange } from '../audit/index.ts';
import { deliveryKey, deliveryStore } from './webhook-deliveries.store.ts';
import type { Listeners } from './webhook-events.ts';
import type { DisabledReason } from './webhooks.schema.ts';
import { webhookStore } from './webhooks.store.ts';

interface StopDeps {
  readonly audit: Pick<AuditLog, 'change'>;
  readonly listeners: Pick<Listeners, 'put'>;
  readonly now: () => number;
}

type Stopped = Pick<WebhookRow, 'tenant_id' | 'id'>;

const actor = { actor: `system:${deliveryKey}` };
const action = { action: 'webhook.disable', entity: 'webhook', mode: 'noted' } as const;

/** Stops a subscription whose receiver stays broken, with all that waits for it. */
export const createWebhookStop =
  ({ audit, listeners, now }: StopDeps) =>
  async ({ tenant_id: tenantId, id }: Stopped, reason: DisabledReason): Promise<void> => {
    const call: AuditedCall = { tenantId, principal: actor, audit: action };
    const work = async (stores: UnitOfWork, tell: TellChange): Promise<WebhookRow | undefined> => {
      const row = await stores(webhookStore).disable(tenantId, id, reason, now());
      if (row === undefined) return undefined;
      await stores(deliveryStore).dropPending(id);
      tell({ id: row.name, before: { enabled: true }, after: { enabled: false, disabledReason: reason } });
      return row;
    };
    const row = await audit.change(call, work);
    if (row !== undefined) listeners.put(row);
  };

export type WebhookStop = ReturnType<typeof createWebhookStop>;
