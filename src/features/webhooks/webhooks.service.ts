import { isDeepStrictEqual } from 'node:util';
import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { WebhookRow } from '../../db/tables/arriving-work.ts';
import type { AuditLog } from '../audit/index.ts';
import { type DeliveryStore, deliveryStore } from './webhook-deliveries.store.ts';
import type { Listeners } from './webhook-events.ts';
import type { webhookOperations } from './webhooks.operations.ts';
import { askedSubscription, maskedValue, type SubscriptionRules } from './webhooks.rules.ts';
import type { WebhookEventType, WebhookSubscription } from './webhooks.schema.ts';
import { type WebhookStore, webhookStore } from './webhooks.store.ts';

export interface WebhookServiceDeps {
  readonly store: WebhookStore;
  readonly deliveries: Pick<DeliveryStore, 'removeHistory'>;
  readonly listeners: Listeners;
  readonly rules: SubscriptionRules;
  /** Of a key that the tenant may name; empty: it has no value now. */
  secretsOf(tenantId: string, key: string): readonly string[];
  /** Called when a URL is refused for its address. */
  readonly targetRefused: () => void;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** What is answered for a name that the tenant has no webhook of. */
export const noWebhook = (name: string): AcpError => new AcpError('not-found', `There is no webhook "${name}".`);

type SubscriptionHandlers = Pick<Handlers<typeof webhookOperations>, 'list' | 'get' | 'save' | 'remove'>;

export const webhookService = (deps: WebhookServiceDeps): SubscriptionHandlers => {
  const { store, listeners, audit, now } = deps;

  const view = (row: WebhookRow): WebhookSubscription => ({
    id: row.id,
    tenantId: row.tenant_id,
    name: row.name,
    url: row.url,
    events: JSON.parse(row.events) as WebhookEventType[],
    secretConfigurationKey: row.secret_key,
    resolved: deps.secretsOf(row.tenant_id, row.secret_key).length > 0,
    headers: Object.fromEntries(Object.keys(store.headersOf(row)).map((name) => [name, maskedValue])),
    labels: labelsOf(row),
    enabled: row.enabled === 1,
    disabledReason: row.disabled_reason as WebhookSubscription['disabledReason'],
    consecutiveFailures: row.consecutive_failures,
    createdAt: isoTime(row.created_at),
    updatedAt: isoTime(row.updated_at),
  });

  /** In the trail values of headers stay masked: that one was changed shows in nothing but the time. */
  const told = (row: WebhookRow | undefined): WebhookSubscription | null => (row === undefined ? null : view(row));

  const asked = (tenantId: string, body: Parameters<typeof askedSubscription>[1]) => {
    try {
      return askedSubscription(tenantId, body, deps.rules);
    } catch (error) {
      if (error instanceof AcpError && error.code === 'target-not-allowed') deps.targetRefused();
      throw error;
    }
  };

  return {
    list: async ({ tenantId }) => ok((await store.list(tenantId)).map(view)),

    async get({ tenantId }, { params: { name } }) {
      const row = await store.find(tenantId, name);
      if (row === undefined) throw noWebhook(name);
      return ok(view(row));
    },

    async save(context, { params: { name }, query, body }) {
      const { tenantId } = context;
      const { url, events, secretKey, headers, enabled } = asked(tenantId, body);
      const row = await audit.save(context, query, async (stores, tell) => {
        const webhooks = stores(webhookStore);
        const before = await webhooks.find(tenantId, name);
        assertExpected(query, before?.updated_at);
        const at = now();
        const saved: WebhookRow = {
          tenant_id: tenantId,
          name,
          id: before?.id ?? deps.newId(),
          url,
          events: JSON.stringify(events),
          secret_key: secretKey,
          headers: isDeepStrictEqual(headers, {}) ? null : JSON.stringify(headers),
          labels: labelsText(body.labels),
          disabled_reason: null,
          enabled: enabled ? 1 : 0,
          consecutive_failures: enabled ? 0 : (before?.consecutive_failures ?? 0),
          created_at: before?.created_at ?? at,
          updated_at: at,
        };
        if (query.dryRun === true) return saved;
        await webhooks.save(saved);
        // Those of a webhook that was off already are gone, but for what others published just then.
        if (!enabled) await stores(deliveryStore).dropPending(saved.id);
        tell({ id: name, before: told(before), after: view(saved) });
        return saved;
      });
      if (query.dryRun !== true) listeners.put(row);
      return ok(view(row));
    },

    async remove(context, { params: { name } }) {
      const { tenantId } = context;
      const row = await store.find(tenantId, name);
      if (row === undefined) throw noWebhook(name);
      // A long history goes in parts beforehand, so that the unit that removes the rest is short.
      while ((await deps.deliveries.removeHistory(row.id)) > 0);
      await audit.change(context, async (stores, tell) => {
        const before = await stores(webhookStore).find(tenantId, name);
        if (before === undefined || !(await stores(webhookStore).remove(tenantId, name))) throw noWebhook(name);
        await stores(deliveryStore).removeAll(before.id);
        tell({ id: name, before: view(before), after: null });
      });
      listeners.drop(tenantId, name);
      return noContent();
    },
  };
};
