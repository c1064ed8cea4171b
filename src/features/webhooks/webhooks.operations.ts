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
    description: 'A webhook subscribes a receiver to kinds of events. Secrets and the values of headers are not shown.',
    responses: { 200: Type.Array(WebhookSubscription) },
    errors: [],
    cli: { columns },
  },
  get: {
    ...read,
    path: '/api/webhooks/{name}',
    summary: 'Show a webhook',
    description: 'The answer tells whether its secret has a value, and why the service has stopped it, where it has.',
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
      'The whole subscription is replaced; its id and its deliveries stay. Deliveries are signed as Standard Webhooks describes, with the secret that the configuration key names.',
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
    description: 'What is still queued is not sent.',
    params: WebhookName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'webhook.delete', entity: 'webhook', mode: 'noted' },
    cli: { command: 'webhooks delete', done: 'Deleted webhook {name}.' },
  },
  test: {
    ...send,
    path: '/api/webhooks/{name}/test',
    summary: 'Queue a delivery of the kind webhook.test',
    description: 'The answer says whether it was queued. How it ended stands in the deliveries.',
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
    summary: 'Send a delivery again, under the same webhook-id',
    description:
      'The delivery is pending again, with all its attempts before it. One that is pending already is sent now.',
    params: Type.Object({ name: Type.String(), id: Uuid }),
    responses: { 200: WebhookDelivery },
    errors: ['not-found', 'webhook-disabled', 'scheduling-disabled'],
    cli: { columns: deliveryColumns },
  },
  retryRange: {
    ...send,
    path: '/api/webhooks/{name}/deliveries/retry',
    summary: 'Send the deliveries of a time range again',
    description:
      'Each goes out under its own webhook-id. One request takes 1000 of them, the oldest first, and says whether there are more.',
    params: WebhookName,
    body: WebhookRetryRequest,
    responses: { 200: WebhookRetryResponse },
    errors: ['not-found', 'webhook-disabled', 'scheduling-disabled'],
    cli: { command: 'webhooks retry-range' },
  },
});
