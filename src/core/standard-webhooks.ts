import { createHmac, timingSafeEqual } from 'node:crypto';

/** Signatures of HTTP messages as https://www.standardwebhooks.com describes them, symmetric (`v1`). */

export const webhookIdHeader = 'webhook-id';
export const webhookTimestampHeader = 'webhook-timestamp';
export const webhookSignatureHeader = 'webhook-signature';

/** Secrets that a sender or receiver may have at once, while they rotate. */
export const maxWebhookSecrets = 3;
const defaultToleranceMs = 300_000;

/** The three headers as they were received. */
export interface WebhookHeaders {
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
}

/** Why a message does not count. For logs: a sender is never told which. */
export type WebhookFault = 'malformed-id' | 'malformed-timestamp' | 'late' | 'no-secret' | 'wrong-signature';

const secretPrefix = 'whsec_';
const base64Form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/;
// A dot divides the three parts of what is signed.
const idForm = /^[\x20-\x2d\x2f-\x7e]{1,256}$/;
const timestampForm = /^[0-9]{1,12}$/;
const versionTag = 'v1,';

/**
 * The key of a secret: `whsec_<base64>` is decoded, anything else is its UTF-8 bytes. Null for what would make an empty
 * key, with which everybody could sign, and for base64 that is none.
 */
export const webhookKey = (secret: string): Buffer | null => {
  const encoded = secret.startsWith(secretPrefix) ? secret.slice(secretPrefix.length) : null;
  if (encoded !== null && !base64Form.test(encoded)) return null;
  const key = encoded === null ? Buffer.from(secret, 'utf8') : Buffer.from(encoded, 'base64');
  return key.length === 0 ? null : key;
};

const keysOf = (secrets: readonly string[]): readonly Buffer[] =>
  secrets
    .slice(0, maxWebhookSecrets)
    .map(webhookKey)
    .filter((key) => key !== null);

const signatureWith = (key: Buffer, id: string, timestamp: string, body: Uint8Array | string): string =>
  createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');

export const isWebhookId = (id: string): boolean => idForm.test(id);

/**
 * The value of `webhook-signature`: one signature for each secret, the newest first, divided by a space. `timestamp` is
 * in unix seconds, `body` is what is sent, to the byte. Null when no secret has a key: nothing is sent unsigned.
 */
export const signWebhook = (
  secrets: readonly string[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: Uint8Array | string },
): string | null => {
  const signatures = keysOf(secrets).map((key) => versionTag + signatureWith(key, id, String(timestamp), body));
  return signatures.length === 0 ? null : signatures.join(' ');
};

const same = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)];
  return left.length === right.length && timingSafeEqual(left, right);
};

/** Whether a text that was presented is one of those expected. How long it takes depends on counts and lengths alone. */
export const isAnyOf = (expected: readonly string[], presented: readonly string[]): boolean => {
  let matches = 0;
  for (const text of expected) for (const candidate of presented) matches += Number(same(candidate, text));
  return matches > 0;
};

/** Times of signatures are whole seconds. */
export interface SignatureWindow {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Default: five minutes. */
  readonly toleranceMs?: number;
}

/** Why the time of a signature, unix seconds as they were sent, does not count; null: it does. */
export const timeFault = (
  timestamp: string,
  { now, toleranceMs = defaultToleranceMs }: SignatureWindow,
): 'malformed-timestamp' | 'late' | null => {
  if (!timestampForm.test(timestamp)) return 'malformed-timestamp';
  return Math.abs(Math.floor(now / 1000) - Number(timestamp)) * 1000 > toleranceMs ? 'late' : null;
};

/**
 * What is wrong with a message; null: it was signed with one of the secrets, within the tolerance of `now` (epoch
 * milliseconds) either way. Every signature of the header counts, parts of another version or form are ignored. How long
 * it takes depends on lengths alone, neither on which secret signed nor on how much of a signature is right.
 */
export const webhookFault = (
  secrets: readonly string[],
  { id, timestamp, signature }: WebhookHeaders,
  body: Uint8Array | string,
  window: SignatureWindow,
): WebhookFault | null => {
  const keys = keysOf(secrets);
  const presented = signature
    .split(' ')
    .filter((part) => part.startsWith(versionTag))
    .map((part) => part.slice(versionTag.length));
  const expected = keys.map((key) => signatureWith(key, id, timestamp, body));
  const isSigned = isAnyOf(expected, presented);
  if (!isWebhookId(id)) return 'malformed-id';
  if (keys.length === 0) return 'no-secret';
  return timeFault(timestamp, window) ?? (isSigned ? null : 'wrong-signature');
};
