import { AcpError, invalidField } from '../../contract/errors.ts';
import { mayNameSecret, type SecretNameRule, secretPrefix } from '../../core/config/index.ts';
import { isConnectionHeader, isCredentialHeader } from '../../providers/http/connection-headers.ts';
import { checkUrlTarget } from '../../providers/http/egress.ts';
import type { WebhookEventType, WebhookSaveRequest } from './webhooks.schema.ts';

export interface SubscriptionRules {
  readonly names: SecretNameRule;
  readonly allowPrivate: boolean;
  readonly allowInsecureHttp: boolean;
  readonly maxExtraHeaders: number;
}

/** A subscription as a request asks for it, checked. */
export interface AskedSubscription {
  readonly url: string;
  readonly events: readonly WebhookEventType[];
  readonly secretKey: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly enabled: boolean;
}

export const maskedValue = '***';

const deliveryHeaders: ReadonlySet<string> = new Set([
  'content-type',
  'user-agent',
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
]);

/** Whether the service sets a header of a delivery itself; a subscription cannot change it. */
export const isDeliveryHeader = (name: string): boolean =>
  deliveryHeaders.has(name.toLowerCase()) || isConnectionHeader(name);

// RFC 9110, section 5.6.2.
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const printable = /^[\x20-\x7e]{0,1024}$/;

const checkedUrl = (text: string, { allowPrivate, allowInsecureHttp }: SubscriptionRules): string => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || url.hostname === '') throw invalidField('url', 'must be an absolute https URL');
  if (url.username !== '' || url.password !== '') throw invalidField('url', 'must not hold a user name or password');
  // One that is empty is a fragment, too.
  if (text.includes('#')) throw invalidField('url', 'must not have a fragment');
  const allowsHttp = allowInsecureHttp && url.protocol === 'http:';
  if (url.protocol !== 'https:' && !allowsHttp)
    throw invalidField('url', 'must be an https URL, unless Service:Webhooks:AllowInsecureHttp is on');
  if (!allowPrivate && checkUrlTarget(url) === 'private')
    throw invalidField('url', 'leads to an address that is not on the public internet', 'target-not-allowed');
  return text;
};

const checkedEvents = (events: readonly WebhookEventType[]): readonly WebhookEventType[] => {
  const repeated = events.findIndex((event, index) => events.indexOf(event) !== index);
  if (repeated >= 0) throw invalidField(`events[${repeated}]`, 'is named twice');
  return events;
};

const checkedHeaders = (headers: Readonly<Record<string, string>>, most: number): Readonly<Record<string, string>> => {
  const taken = Object.entries(headers).filter(([name]) => !isDeliveryHeader(name));
  if (taken.length > most) throw invalidField('headers', `must have at most ${most} members`);
  const names = new Set<string>();
  for (const [name, value] of taken) {
    const path = `headers.${name}`;
    const lower = name.toLowerCase();
    if (!token.test(name)) throw invalidField(path, 'must be an HTTP header name');
    if (isCredentialHeader(name)) throw invalidField(path, 'must not carry a credential');
    if (names.has(lower)) throw invalidField(path, 'is named twice');
    if (value === maskedValue) throw invalidField(path, 'must be the value itself, not what stands for it in answers');
    if (!printable.test(value)) throw invalidField(path, 'must be at most 1024 printable ASCII characters');
    names.add(lower);
  }
  return Object.fromEntries(taken);
};

/** Throws `validation-failed`, `target-not-allowed` or `configuration-key-not-allowed`. */
export const askedSubscription = (
  tenantId: string,
  body: WebhookSaveRequest,
  rules: SubscriptionRules,
): AskedSubscription => {
  const { names } = rules;
  const key = body.secretConfigurationKey;
  const url = checkedUrl(body.url, rules);
  if (!mayNameSecret(names, tenantId, key))
    throw new AcpError(
      'configuration-key-not-allowed',
      `secretConfigurationKey must start with ${secretPrefix(names, tenantId)}`,
    );
  return {
    url,
    events: checkedEvents(body.events),
    secretKey: key,
    headers: checkedHeaders(body.headers ?? {}, rules.maxExtraHeaders),
    enabled: body.enabled ?? true,
  };
};

// Deliveries that failed together must not come back together; never sooner than the operator has set.
const spread = 0.1;

/**
 * Milliseconds until the attempt after this one (from 1) of a series; null: it was the last. What the receiver asked for
 * moves it later, by at most the longest of the delays.
 */
export const nextDelayMs = (
  attempt: number,
  delays: readonly number[],
  retryAfterMs: number | null,
  random: () => number = Math.random,
): number | null => {
  const delay = delays[attempt - 1];
  if (delay === undefined) return null;
  const own = Math.ceil(delay * (1 + spread * random()));
  return Math.max(own, Math.min(retryAfterMs ?? 0, Math.max(...delays)));
};

const seconds = /^\d{1,9}$/;

/** `Retry-After` of RFC 9110, section 10.2.3, in seconds or as a date; null: there is none that can be read. */
export const retryAfterMs = (value: string | undefined, now: number): number | null => {
  if (value === undefined) return null;
  const text = value.trim();
  if (seconds.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - now);
};
