import { createHmac } from 'node:crypto';
import {
  isAnyOf,
  isWebhookId,
  maxWebhookSecrets,
  type SignatureWindow,
  signWebhook,
  timeFault,
  type WebhookFault,
  webhookFault,
  webhookIdHeader,
  webhookSignatureHeader,
  webhookTimestampHeader,
} from './standard-webhooks.ts';

/** How senders sign what they send: Standard Webhooks, or in a way of their own. */
export const webhookSchemes = ['standard', 'github', 'stripe', 'slack'] as const;
export type WebhookSchemeName = (typeof webhookSchemes)[number];

/** By lower-case name; a header that was sent twice is left out. */
export type SignedHeaders = Readonly<Record<string, string | undefined>>;

/** What is sent: its id, the time in unix seconds, and the bytes. */
export interface MessageToSign {
  readonly id: string;
  readonly timestamp: number;
  readonly body: string;
}

interface WebhookScheme {
  /** What is wrong with a message; null: it was signed with one of the secrets. */
  fault(
    secrets: readonly string[],
    headers: SignedHeaders,
    body: Uint8Array,
    window: SignatureWindow,
  ): WebhookFault | null;
  /** The headers of a message; null: the secret makes no key. */
  sign(secret: string, message: MessageToSign): Readonly<Record<string, string>> | null;
}

type Part = string | Uint8Array;

/** HMAC-SHA256 in lower-case hex, by the UTF-8 bytes of the secret. */
const hexSignature = (secret: string, parts: readonly Part[]): string => {
  const hmac = createHmac('sha256', secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest('hex');
};

const signatureFault = (
  secrets: readonly string[],
  parts: readonly Part[],
  presented: readonly string[],
): WebhookFault | null => {
  const keys = secrets.slice(0, maxWebhookSecrets).filter((secret) => secret !== '');
  const isSigned = isAnyOf(
    keys.map((key) => hexSignature(key, parts)),
    presented,
  );
  if (keys.length === 0) return 'no-secret';
  return isSigned ? null : 'wrong-signature';
};

/** The values of a list such as `t=1,v1=ab,v1=cd` under one name. */
const valuesIn = (list: string, name: string): readonly string[] =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(`${name}=`))
    .map((part) => part.slice(name.length + 1));

/** https://www.standardwebhooks.com */
const standard: WebhookScheme = {
  fault: (secrets, headers, body, window) =>
    webhookFault(
      secrets,
      {
        id: headers[webhookIdHeader] ?? '',
        timestamp: headers[webhookTimestampHeader] ?? '',
        signature: headers[webhookSignatureHeader] ?? '',
      },
      body,
      window,
    ),
  sign(secret, message) {
    const signature = signWebhook([secret], message);
    if (signature === null) return null;
    return {
      [webhookIdHeader]: message.id,
      [webhookTimestampHeader]: String(message.timestamp),
      [webhookSignatureHeader]: signature,
    };
  },
};

/** https://docs.github.com/webhooks: the body alone is signed, neither a time nor the id of the delivery. */
const github: WebhookScheme = {
  fault(secrets, headers, body) {
    const fault = signatureFault(secrets, [body], valuesIn(headers['x-hub-signature-256'] ?? '', 'sha256'));
    return isWebhookId(headers['x-github-delivery'] ?? '') ? fault : 'malformed-id';
  },
  sign: (secret, { id, body }) =>
    secret === '' ? null : { 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${hexSignature(secret, [body])}` },
};

/** https://docs.stripe.com/webhooks: the secret is used as it is written, `whsec_` included. */
const stripe: WebhookScheme = {
  fault(secrets, headers, body, window) {
    const list = headers['stripe-signature'] ?? '';
    const [timestamp = '', ...more] = valuesIn(list, 't');
    const fault = signatureFault(secrets, [`${timestamp}.`, body], valuesIn(list, 'v1'));
    if (more.length > 0) return 'malformed-timestamp';
    return timeFault(timestamp, window) ?? fault;
  },
  sign: (secret, { timestamp, body }) =>
    secret === '' ? null : { 'stripe-signature': `t=${timestamp},v1=${hexSignature(secret, [`${timestamp}.`, body])}` },
};

/** https://docs.slack.dev/authentication/verifying-requests-from-slack */
const slack: WebhookScheme = {
  fault(secrets, headers, body, window) {
    const timestamp = headers['x-slack-request-timestamp'] ?? '';
    const presented = headers['x-slack-signature'] ?? '';
    const fault = signatureFault(
      secrets,
      [`v0:${timestamp}:`, body],
      presented.startsWith('v0=') ? [presented.slice('v0='.length)] : [],
    );
    return timeFault(timestamp, window) ?? fault;
  },
  sign: (secret, { timestamp, body }) =>
    secret === ''
      ? null
      : {
          'x-slack-request-timestamp': String(timestamp),
          'x-slack-signature': `v0=${hexSignature(secret, [`v0:${timestamp}:`, body])}`,
        },
};

/** Each by its public documentation. Comparisons take the same time whatever was presented. */
export const webhookScheme: Readonly<Record<WebhookSchemeName, WebhookScheme>> = { standard, github, stripe, slack };

/** Headers of all schemes, by which a message is signed. */
export const signatureHeaders = [
  webhookIdHeader,
  webhookTimestampHeader,
  webhookSignatureHeader,
  'x-github-delivery',
  'x-hub-signature-256',
  'stripe-signature',
  'x-slack-request-timestamp',
  'x-slack-signature',
] as const;
