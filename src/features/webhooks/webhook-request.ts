import {
  signWebhook,
  webhookIdHeader,
  webhookSignatureHeader,
  webhookTimestampHeader,
} from '../../core/standard-webhooks.ts';
import { version } from '../../core/version.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { isTlsFailure, OutboundError } from '../../providers/http/outbound-error.ts';
import { isDeliveryHeader, retryAfterMs } from './webhooks.rules.ts';
import type { DeliveryError } from './webhooks.schema.ts';

/** What an attempt at a delivery came to. */
export type AttemptResult =
  | { readonly kind: 'delivered'; readonly status: number }
  | {
      readonly kind: 'failed';
      readonly error: DeliveryError;
      /** Null: no answer came. */
      readonly status: number | null;
      /** What the receiver asks to be given; null: it does not. */
      readonly retryAfterMs: number | null;
      /** For the log, never for a client: it may tell addresses. */
      readonly cause: unknown;
    }
  /** The address rules refuse the target. */
  | { readonly kind: 'refused'; readonly cause: unknown }
  /** The signal was aborted. */
  | { readonly kind: 'stopped' };

/** What is sent, and where. */
export interface WebhookMessage {
  /** The same on every attempt. */
  readonly id: string;
  readonly url: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Newest first. */
  readonly secrets: readonly string[];
}

export interface RequestDeps {
  readonly http: Pick<OutboundHttp, 'request'>;
  readonly timeoutMs: number;
  readonly maxResponseBytes: number;
  readonly allowInsecureHttp: boolean;
  readonly now: () => number;
}

const failed = (
  error: DeliveryError,
  more: Partial<Pick<Extract<AttemptResult, { kind: 'failed' }>, 'status' | 'retryAfterMs' | 'cause'>> = {},
): AttemptResult => ({ kind: 'failed', error, status: null, retryAfterMs: null, cause: null, ...more });

const resultOf = (error: OutboundError): AttemptResult => {
  const more = { status: error.status, cause: error };
  switch (error.code) {
    case 'target-not-allowed':
      return { kind: 'refused', cause: error };
    case 'canceled':
      return { kind: 'stopped' };
    case 'timed-out':
      return failed('timeout', more);
    case 'unresolved':
      return failed('dns-failed', more);
    default:
      return failed(isTlsFailure(error) ? 'tls-failed' : 'connection-failed', more);
  }
};

// Of the answers that are no success these two say when to come back.
const asksToWait: ReadonlySet<number> = new Set([429, 503]);

/** One signed POST. Nothing is sent without a signature. */
export const createWebhookRequest =
  ({ http, timeoutMs, maxResponseBytes, allowInsecureHttp, now }: RequestDeps) =>
  async ({ id, url: target, body, headers, secrets }: WebhookMessage, signal: AbortSignal): Promise<AttemptResult> => {
    const timestamp = Math.floor(now() / 1000);
    const signature = signWebhook(secrets, { id, timestamp, body });
    if (signature === null) return failed('secret-unresolved');
    const url = new URL(target);
    // Saved while http was allowed.
    if (url.protocol !== 'https:' && !allowInsecureHttp)
      return { kind: 'refused', cause: new Error('http is not allowed any more') };
    try {
      const answer = await http.request({
        method: 'POST',
        url,
        headers: {
          // A subscription of an earlier version may have some that belong to the connection.
          ...Object.fromEntries(Object.entries(headers).filter(([name]) => !isDeliveryHeader(name))),
          'content-type': 'application/json',
          'user-agent': `acp/${version}`,
          [webhookIdHeader]: id,
          [webhookTimestampHeader]: String(timestamp),
          [webhookSignatureHeader]: signature,
        },
        body,
        signal,
        timeoutMs,
        maxBodyBytes: maxResponseBytes,
        dropBody: true,
      });
      const { status } = answer;
      if (status >= 200 && status <= 299) return { kind: 'delivered', status };
      if (status >= 300 && status <= 399) return failed('redirect-refused', { status });
      const wait = asksToWait.has(status) ? retryAfterMs(answer.headers['retry-after'], now()) : null;
      return failed('http-status', { status, retryAfterMs: wait });
    } catch (error) {
      if (error instanceof OutboundError) return resultOf(error);
      throw error;
    }
  };

export type WebhookRequest = ReturnType<typeof createWebhookRequest>;
