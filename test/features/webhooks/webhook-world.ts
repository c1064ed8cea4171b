import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Webhook } from 'standardwebhooks';
import type { Client } from '../../../src/client/client.ts';
import type {
  DeliveryStatus,
  WebhookDelivery,
  WebhookEventType,
  WebhookSaveRequest,
  WebhookSubscription,
} from '../../../src/features/webhooks/webhooks.schema.ts';
import { type LoopbackServer, type ReceivedRequest, startServer } from '../../providers/http/loopback-server.ts';
import type { AppSetup } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

export const crmSecret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const crmKey = 'Service:WebhookSecrets:crm';

/** A service whose receivers may be on this machine; `webhooks` are further settings of its section. */
export const webhookSetup = (
  webhooks: Readonly<Record<string, unknown>> = {},
  { service, ...more }: AppSetup = {},
): AppSetup => ({
  agents: [{ name: 'helper' }],
  ...more,
  service: {
    Webhooks: { AllowInsecureHttp: true, AllowPrivateNetworkTargets: true, ...webhooks },
    WebhookSecrets: { crm: crmSecret },
    ...service,
  },
});

type Answer = Parameters<typeof startServer>[0];

/** A receiver on this machine; default: it takes everything. */
export const receiver = async (
  t: TestContext,
  answer: Answer = (_request, response) => response.writeHead(204).end(),
): Promise<LoopbackServer> => {
  const server = await startServer(answer);
  t.after(() => server.close());
  return server;
};

export const save = async (
  client: Client,
  url: string,
  { name = 'crm', ...more }: Partial<WebhookSaveRequest> & { readonly name?: string } = {},
): Promise<WebhookSubscription> =>
  (
    await client.webhooks.save({
      params: { name },
      body: { url, events: ['run.completed', 'run.failed', 'run.canceled'], secretConfigurationKey: crmKey, ...more },
    })
  ).body;

export const get = async (client: Client, name = 'crm'): Promise<WebhookSubscription> =>
  (await client.webhooks.get({ params: { name } })).body;

/** Newest first. */
export const deliveriesOf = async (
  client: Client,
  query: { status?: DeliveryStatus; skip?: number; take?: number } = {},
  name = 'crm',
): Promise<readonly WebhookDelivery[]> => (await client.webhooks.deliveries({ params: { name }, query })).body;

/** The newest delivery once it is as `isSo` says. */
export const newest = (
  client: Client,
  what: string,
  isSo: (delivery: WebhookDelivery) => boolean,
): Promise<WebhookDelivery> =>
  eventually(what, async () => {
    const [delivery] = await deliveriesOf(client, { take: 1 });
    return delivery !== undefined && isSo(delivery) ? delivery : null;
  });

export const sendTest = async (client: Client, name = 'crm') => (await client.webhooks.test({ params: { name } })).body;

export interface Sent {
  readonly id: string;
  readonly type: WebhookEventType;
  readonly timestamp: string;
  // biome-ignore lint/suspicious/noExplicitAny: members differ by type, and a test asserts on the ones it means.
  readonly data: Record<string, any>;
}

/** What a receiver got, verified with the public library. */
export const verified = ({ body, headers }: ReceivedRequest, secret = crmSecret): Sent => {
  const webhook = secret.startsWith('whsec_')
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret), { format: 'raw' });
  const message = webhook.verify(body, headers as Record<string, string>) as Omit<Sent, 'id'>;
  assert.equal(headers['content-type'], 'application/json');
  assert.match(String(headers['user-agent']), /^acp\/\d+\.\d+\.\d+/);
  return { ...message, id: String(headers['webhook-id']) };
};

/** The first so many messages of a receiver, in the order in which they came. */
export const messages = (server: LoopbackServer, count: number): Promise<readonly Sent[]> =>
  eventually(`${count} deliveries have arrived`, () =>
    server.received.length >= count ? server.received.slice(0, count).map((request) => verified(request)) : null,
  );
