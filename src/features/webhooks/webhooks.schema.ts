import Type, { type Static } from 'typebox';
import { closed, Int32, Labels, nullable, oneOf, pagingQuery, Time, Uuid } from '../../contract/schema.ts';

export const webhookEventTypes = [
  'run.completed',
  'run.failed',
  'run.canceled',
  'approval.pending',
  'workflow.request.pending',
  'job.completed',
  'job.failed',
  'eval.completed',
  'quota.threshold',
  'run.score.low',
  'webhook.test',
] as const;
export type WebhookEventType = (typeof webhookEventTypes)[number];

export const deliveryStatuses = ['Pending', 'Delivered', 'Failed', 'Dropped'] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

export const deliveryErrors = [
  'timeout',
  'dns-failed',
  'connection-failed',
  'tls-failed',
  'http-status',
  'redirect-refused',
  'target-not-allowed',
  'secret-unresolved',
  'subscription-disabled',
] as const;
export type DeliveryError = (typeof deliveryErrors)[number];

export type DisabledReason = 'ConsecutiveFailures' | 'Gone';

const EventType = oneOf(webhookEventTypes);
const secretKey = 'Configuration key that holds the signing secret; the secret itself is never sent';

export const WebhookSaveRequest = closed(
  {
    url: Type.String({ maxLength: 2048, description: 'Absolute, https, without user name, password and fragment' }),
    events: Type.Array(EventType, {
      minItems: 1,
      maxItems: webhookEventTypes.length,
      description: 'Kinds of events, without duplicates',
    }),
    secretConfigurationKey: Type.String({ minLength: 1, maxLength: 256, description: secretKey }),
    headers: Type.Optional(
      nullable(Type.Record(Type.String(), Type.String(), { maxProperties: 1000 }), {
        description:
          'Headers sent with every delivery; they must not contain credentials. Headers that the service sets itself are ignored',
      }),
    ),
    labels: Type.Optional(Labels),
    enabled: Type.Optional(Type.Boolean({ description: 'Default true, which also resets the count of failures' })),
  },
  { title: 'WebhookSaveRequest' },
);
export type WebhookSaveRequest = Static<typeof WebhookSaveRequest>;

export const WebhookSubscription = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String(),
    url: Type.String(),
    events: Type.Array(EventType),
    secretConfigurationKey: Type.String({ description: secretKey }),
    resolved: Type.Boolean({ description: 'Whether that key has a value now' }),
    headers: Type.Record(Type.String(), oneOf(['***']), { description: 'Names of the headers; values are not shown' }),
    labels: Labels,
    enabled: Type.Boolean(),
    disabledReason: nullable(oneOf(['ConsecutiveFailures', 'Gone']), {
      description: 'Reason why the service disabled the webhook; null: it did not',
    }),
    consecutiveFailures: Type.Integer({ minimum: 0 }),
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'WebhookSubscription' },
);
export type WebhookSubscription = Static<typeof WebhookSubscription>;

export const WebhookTestResponse = Type.Object(
  {
    name: Type.String(),
    queued: Type.Boolean({ description: 'False: nothing is sent, and the message gives the reason' }),
    message: Type.String(),
    deliveryId: nullable(Uuid),
  },
  { title: 'WebhookTestResponse' },
);
export type WebhookTestResponse = Static<typeof WebhookTestResponse>;

export const WebhookDelivery = Type.Object(
  {
    id: Type.Unsafe<string>({ ...Uuid, description: 'Sent as webhook-id, the same on every attempt' }),
    subscriptionId: Uuid,
    tenantId: Type.String(),
    eventType: EventType,
    payload: Type.String({ description: 'JSON body that is sent' }),
    status: oneOf(deliveryStatuses),
    attempt: Int32({ minimum: 0, description: 'Attempts made' }),
    responseCode: nullable(Type.Integer(), {
      description: 'HTTP status of the latest attempt; null without a response',
    }),
    error: nullable(oneOf(deliveryErrors), { description: 'Error of the latest attempt' }),
    nextAttemptAt: nullable(Time, { description: 'Time of the next attempt of a pending delivery' }),
    createdAt: Time,
    deliveredAt: nullable(Time),
  },
  { title: 'WebhookDelivery' },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;

export const DeliveryQuery = Type.Object({ status: Type.Optional(oneOf(deliveryStatuses)), ...pagingQuery });

export const WebhookRetryRequest = closed(
  {
    from: Type.Unsafe<string>({ ...Time, description: 'Deliveries of events at or after this time' }),
    to: Type.Optional(nullable(Time, { description: 'Deliveries of events before this time; default: now' })),
    statuses: Type.Optional(
      Type.Array(oneOf(['Delivered', 'Failed', 'Dropped']), {
        minItems: 1,
        maxItems: 3,
        description: 'Default: Failed and Dropped',
      }),
    ),
  },
  { title: 'WebhookRetryRequest' },
);
export type WebhookRetryRequest = Static<typeof WebhookRetryRequest>;

export const WebhookRetryResponse = Type.Object(
  {
    name: Type.String(),
    queued: Type.Integer({ minimum: 0, description: 'Number of deliveries that are resent' }),
    more: Type.Boolean({ description: 'True: the range holds more deliveries than one request resends' }),
    nextFrom: nullable(Time, { description: 'The `from` of the next request; null: there are no more' }),
  },
  { title: 'WebhookRetryResponse' },
);
export type WebhookRetryResponse = Static<typeof WebhookRetryResponse>;
