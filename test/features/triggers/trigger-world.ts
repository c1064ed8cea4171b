import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { ProblemError } from '../../../src/client/problem.ts';
import type { Problem } from '../../../src/contract/errors.ts';
import { newId } from '../../../src/core/ids.ts';
import { signWebhook } from '../../../src/core/standard-webhooks.ts';
import { type MessageToSign, type WebhookSchemeName, webhookScheme } from '../../../src/core/webhook-schemes.ts';
import type { InboundTrigger, InboundTriggerSaveRequest } from '../../../src/features/triggers/triggers.schema.ts';
import type { AppSetup, OpenApp, TestApp } from '../../support/app.ts';

export const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
export const secretKey = 'Service:TriggerSecrets:crm';

type Settings = NonNullable<AppSetup['service']>;

/** A service with the agent `helper` and a secret under the key above. */
export const openTriggers = (open: OpenApp, { service, ...more }: AppSetup = {}): Promise<TestApp> =>
  open({
    agents: [{ name: 'helper' }],
    ...more,
    service: { TriggerSecrets: { crm: secret }, ...service } as Settings,
  });

/** Saves the trigger `ticket` of the agent `helper`. */
export const saveTrigger = async (
  { client }: Pick<TestApp, 'client'>,
  more: Partial<InboundTriggerSaveRequest> = {},
  name = 'ticket',
): Promise<InboundTrigger> => {
  const body = { targetName: 'helper', secretConfigurationKey: secretKey, ...more };
  return (await client.triggers.save({ params: { name }, body })).body;
};

export interface SentCall {
  readonly tenantId?: string;
  readonly name?: string;
  readonly id?: string;
  readonly body?: string;
  readonly secret?: string;
  readonly scheme?: WebhookSchemeName;
  /** Unix seconds; default: the time of the service. */
  readonly timestamp?: number;
  /** Laid over those of the signature; undefined takes one away. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

export const unixSeconds = ({ clock }: Pick<TestApp, 'clock'>): number => Math.floor(clock.now() / 1000);

/** The headers of a call as its sender makes them. */
export const headersOf = (app: Pick<TestApp, 'clock'>, call: SentCall = {}): Record<string, string> => {
  const message: MessageToSign = {
    id: call.id ?? newId(),
    timestamp: call.timestamp ?? unixSeconds(app),
    body: call.body ?? 'Hi',
  };
  const signed = webhookScheme[call.scheme ?? 'standard'].sign(call.secret ?? secret, message);
  const headers = { ...signed, ...call.headers };
  return Object.fromEntries(
    Object.entries(headers).filter((field): field is [string, string] => field[1] !== undefined),
  );
};

/** Calls a trigger through the client; the answer to what it is refused with is thrown. */
export const sendCall = (app: Pick<TestApp, 'client' | 'clock'>, call: SentCall = {}) =>
  app.client.triggers.accept({
    params: { tenantId: call.tenantId ?? 'default', name: call.name ?? 'ticket' },
    headers: headersOf(app, call),
    body: call.body ?? 'Hi',
  });

/** The id of the run that an accepted call has queued. */
export const acceptedRun = async (app: Pick<TestApp, 'client' | 'clock'>, call: SentCall = {}): Promise<string> => {
  const reply = await sendCall(app, call);
  assert.equal(reply.status, 202);
  return reply.body.runId;
};

/** `202`, or the status and code that a call is refused with. */
export const outcomeOf = async (app: Pick<TestApp, 'client' | 'clock'>, call: SentCall = {}): Promise<string> => {
  try {
    return String((await sendCall(app, call)).status);
  } catch (error) {
    if (error instanceof ProblemError) return `${error.problem.status} ${error.problem.code}`;
    throw error;
  }
};

/** Sends bytes as they are, which a client that takes text cannot. */
export const postRaw = (
  app: TestApp,
  path: string,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string>>,
): Promise<Response> =>
  fetch(app.url + path, { method: 'POST', headers, body: body as NonNullable<RequestInit['body']> });

/** Headers of Standard Webhooks over any bytes. */
export const signBytes = (app: Pick<TestApp, 'clock'>, body: Uint8Array | string, id = newId()) => {
  const timestamp = unixSeconds(app);
  const signature = signWebhook([secret], { id, timestamp, body });
  assert.ok(signature !== null);
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
};

export const problemIn = async (response: Response): Promise<Problem> => (await response.json()) as Problem;

/** A signature that is right but for the secret, over any text. */
export const strangersSignature = (text: string): string =>
  `v1,${createHmac('sha256', 'other').update(text).digest('base64')}`;
