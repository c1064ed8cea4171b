import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import { namePattern, Uuid } from '../../contract/schema.ts';
import {
  DeliveryQuery,
  WebhookDelivery,
  WebhookRetryRequest,
  WebhookRetryResponse,
  WebhookSaveRequest,
  WebhookSubscription,
  WebhookTestResponse,
} from './webhooks.schema.ts';

const read = { tag: 'Webhooks', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const write = { tag: 'Webhooks', role: 'Admin', scope: 'PlatformAdmin' } as const;
const send = { tag: 'Webhooks', role: 'Operator', scope: 'RunsWrite', method: 'POST' } as const;

const WebhookName = Type.Object({ name: Type.String() });
const columns = ['name', 'url', 'events', 'enabled', 'disabledReason', 'consecutiveFailures', 'resolved'];
const deliveryColumns = ['id', 'eventType', 'status', 'attempt', 'responseCode', 'error', 'nextAttemptAt', 'createdAt'];

export const webhookOperations = defineOperations({
  list: {
    ...read,
    path: '/api/webhooks',
    summary: 'List the webhooks of the tenant, by name',
    description: 'A webhook subscribes a receiver to kinds of events. Secrets and header values are not shown.',
    responses: { 200: Type.Array(WebhookSubscription) },
    errors: [],
    cli: { columns },
  },
  get: {
    ...read,
    path: '/api/webhooks/{name}',
    summary: 'Show a webhook',
    description: 'The response shows whether its secret has a value and, if the service disabled it, the reason.',
    params: WebhookName,
    responses: { 200: WebhookSubscription },
    errors: ['not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/webhooks/{name}',
    summary: 'Create or replace a webhook',
    description:
      'Replaces the complete subscription, but not its id and deliveries. Deliveries are signed as specified by Standard Webhooks, with the secret that the configuration key names.',
    params: Type.Object({ name: Type.String({ pattern: namePattern }) }),
    query: SaveQuery,
    body: WebhookSaveRequest,
    responses: { 200: WebhookSubscription },
    errors: ['configuration-key-not-allowed', 'target-not-allowed', 'version-conflict'],
    audit: { action: 'webhook.save', entity: 'webhook', mode: 'noted' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/webhooks/{name}',
    summary: 'Delete a webhook with its deliveries',
    description: 'Queued deliveries are not sent.',
    params: WebhookName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'webhook.delete', entity: 'webhook', mode: 'noted' },
    cli: { command: 'webhooks delete', done: 'Deleted webhook {name}.' },
  },
  test: {
    ...send,
    path: '/api/webhooks/{name}/test',
    summary: 'Queue a delivery of kind webhook.test',
    description: 'The response shows whether the delivery was queued. The list of deliveries shows its outcome.',
    params: WebhookName,
    responses: { 200: WebhookTestResponse },
    errors: ['not-found', 'scheduling-disabled'],
  },
  deliveries: {
    ...read,
    path: '/api/webhooks/{name}/deliveries',
    summary: 'List the deliveries of a webhook, newest first',
    description: 'Each delivery is one event for this receiver, with its latest attempt.',
    params: WebhookName,
    query: DeliveryQuery,
    responses: { 200: Type.Array(WebhookDelivery) },
    errors: ['not-found'],
    cli: { columns: deliveryColumns },
  },
  retry: {
    ...send,
    path: '/api/webhooks/{name}/deliveries/{id}/retry',
    summary: 'Resend a delivery with the same webhook-id',
    description:
      'The delivery becomes pending again, with all its attempts available. A delivery that is already pending is sent now.',
    params: Type.Object({ name: Type.String(), id: Uuid }),
    responses: { 200: WebhookDelivery },
    errors: ['not-found', 'webhook-disabled', 'scheduling-disabled'],
    cli: { columns: deliveryColumns },
  },
  retryRange: {
    ...send,
    path: '/api/webhooks/{name}/deliveries/retry',
    summary: 'Resend the deliveries of a time range',
    description:
      'Each delivery keeps its webhook-id. One request resends at most 1000, oldest first; the response shows whether more remain.',
    params: WebhookName,
    body: WebhookRetryRequest,
    responses: { 200: WebhookRetryResponse },
    errors: ['not-found', 'webhook-disabled', 'scheduling-disabled'],
    cli: { command: 'webhooks retry-range' },
  },
});
