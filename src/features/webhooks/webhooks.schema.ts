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
const secretKey = 'Configuration key of the secret that signs; the secret itself is never sent';

export const WebhookSaveRequest = closed(
  {
    url: Type.String({ maxLength: 2048, description: 'Absolute, https, without user name, password and fragment' }),
    events: Type.Array(EventType, {
      minItems: 1,
      maxItems: webhookEventTypes.length,
      description: 'Kinds of events, each once',
    }),
    secretConfigurationKey: Type.String({ minLength: 1, maxLength: 256, description: secretKey }),
    headers: Type.Optional(
      nullable(Type.Record(Type.String(), Type.String(), { maxProperties: 1000 }), {
        description:
          'Sent with every delivery; no place for credentials. Those that the service sets itself are left out',
      }),
    ),
    labels: Type.Optional(Labels),
    enabled: Type.Optional(Type.Boolean({ description: 'Default true, which also begins to count failures anew' })),
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
    headers: Type.Record(Type.String(), oneOf(['***']), { description: 'Their values are not shown' }),
    labels: Labels,
    enabled: Type.Boolean(),
    disabledReason: nullable(oneOf(['ConsecutiveFailures', 'Gone']), {
      description: 'Why the service has stopped it; null: it has not',
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
    queued: Type.Boolean({ description: 'False: nothing is sent, and the message says why' }),
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
    payload: Type.String({ description: 'The JSON body as it is sent' }),
    status: oneOf(deliveryStatuses),
    attempt: Int32({ minimum: 0, description: 'Attempts made' }),
    responseCode: nullable(Type.Integer(), { description: 'Of the latest attempt; null when no answer came' }),
    error: nullable(oneOf(deliveryErrors), { description: 'Of the latest attempt' }),
    nextAttemptAt: nullable(Time, { description: 'Of a pending one' }),
    createdAt: Time,
    deliveredAt: nullable(Time),
  },
  { title: 'WebhookDelivery' },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;

export const DeliveryQuery = Type.Object({ status: Type.Optional(oneOf(deliveryStatuses)), ...pagingQuery });

export const WebhookRetryRequest = closed(
  {
    from: Type.Unsafe<string>({ ...Time, description: 'Deliveries of events from then on' }),
    to: Type.Optional(nullable(Time, { description: 'To before then; default: up to now' })),
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
    queued: Type.Integer({ minimum: 0, description: 'Deliveries that are sent again' }),
    more: Type.Boolean({ description: 'True: the range holds more than one request takes' }),
    nextFrom: nullable(Time, { description: 'The `from` of the request that goes on; null: there is no more' }),
  },
  { title: 'WebhookRetryResponse' },
);
export type WebhookRetryResponse = Static<typeof WebhookRetryResponse>;
