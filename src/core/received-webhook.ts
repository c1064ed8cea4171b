import {
  type WebhookFault,
  webhookFault,
  webhookIdHeader,
  webhookSignatureHeader,
  webhookTimestampHeader,
} from './standard-webhooks.ts';

/** What a receiver has got: the headers in any letter case, and the body as it came, before anything was parsed. */
export interface ReceivedWebhook {
  /** The secret that the sender signs with, or up to three while it changes: `whsec_<base64>`, or any text. */
  readonly secret: string | readonly string[];
  readonly headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Uint8Array | string;
  /** How far the sender's clock may be off; default: five minutes. */
  readonly toleranceMs?: number;
  /** Epoch milliseconds; default: now. */
  readonly now?: number;
}

/** `id` is the same on every attempt of a delivery: whoever has seen it has seen the message. */
export type WebhookVerdict =
  | { readonly ok: true; readonly id: string; readonly sentAt: Date }
  | { readonly ok: false; readonly reason: WebhookFault };

const headerOf = ({ headers }: ReceivedWebhook, name: string): string => {
  if (typeof headers.get === 'function') return headers.get(name) ?? '';
  const fields = Object.entries(headers).filter(([field]) => field.toLowerCase() === name);
  const [value, ...more] = fields.flatMap(([, text]) => (text === undefined ? [] : text)) as string[];
  return value === undefined || more.length > 0 ? '' : value;
};

/**
 * Whether a message was signed by Standard Webhooks with the secret, not long ago. Never throws; answer one that was not
 * with 401, and tell its sender no reason.
 */
export const verifyWebhook = (received: ReceivedWebhook): WebhookVerdict => {
  const headers = {
    id: headerOf(received, webhookIdHeader),
    timestamp: headerOf(received, webhookTimestampHeader),
    signature: headerOf(received, webhookSignatureHeader),
  };
  const { secret, body, toleranceMs, now = Date.now() } = received;
  const secrets = typeof secret === 'string' ? [secret] : secret;
  const reason = webhookFault(secrets, headers, body, { now, ...(toleranceMs === undefined ? {} : { toleranceMs }) });
  if (reason !== null) return { ok: false, reason };
  return { ok: true, id: headers.id, sentAt: new Date(Number(headers.timestamp) * 1000) };
};
