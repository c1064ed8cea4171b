import { isRecord } from '../../../contract/record.ts';
import { identityJsonLimits, parseForeignJson } from '../../../core/documents/foreign-json.ts';
import type { OutboundHttp, OutboundResponse } from '../../http/outbound.ts';
import { OutboundError } from '../../http/outbound-error.ts';
import { OAuthFailure, type OAuthStep } from './oauth-failure.ts';

export interface OAuthWebDeps {
  /** The one door: addresses are checked at each connection, and no redirect is followed. */
  readonly http: Pick<OutboundHttp, 'request'>;
  /** Whether a credential may be sent there: https, or a loopback address where those are allowed. */
  readonly isSafe: (url: URL) => boolean;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export interface JsonAnswer {
  readonly status: number;
  /** Null: it is no JSON object. */
  readonly body: JsonObject | null;
}

/** The requests of one flow, which have one time limit together. */
export interface OAuthWeb {
  get(url: URL, step: OAuthStep): Promise<JsonAnswer>;
  post(
    url: URL,
    step: OAuthStep,
    body: URLSearchParams | JsonObject,
    headers?: Readonly<Record<string, string>>,
  ): Promise<JsonAnswer>;
  /** An address that a document names. Throws OAuthFailure for one that no credential may be sent to. */
  address(value: unknown, step: OAuthStep): URL;
}

export type OpenOAuthWeb = (timeoutMs: number, signal?: AbortSignal) => OAuthWeb;

// Documents of large providers have about ten thousand bytes.
const maxDocumentBytes = 262_144;

const objectOf = ({ body }: OutboundResponse): JsonObject | null => {
  try {
    const value = parseForeignJson(body, identityJsonLimits);
    return isRecord(value) ? value : null;
  } catch {
    // What is no JSON says nothing.
    return null;
  }
};

export const oauthWeb =
  ({ http, isSafe }: OAuthWebDeps): OpenOAuthWeb =>
  (timeoutMs, signal) => {
    const endsAt = performance.now() + timeoutMs;
    const send = async (
      step: OAuthStep,
      request: Pick<Parameters<OutboundHttp['request']>[0], 'method' | 'url' | 'headers' | 'body'>,
    ): Promise<JsonAnswer> => {
      if (!isSafe(request.url)) throw new OAuthFailure(step, 'unsafe-address');
      try {
        const answer = await http.request({
          ...request,
          ...(signal === undefined ? {} : { signal }),
          timeoutMs: Math.max(1, Math.ceil(endsAt - performance.now())),
          maxBodyBytes: maxDocumentBytes,
        });
        return { status: answer.status, body: objectOf(answer) };
      } catch (error) {
        if (error instanceof OutboundError) throw new OAuthFailure(step, 'unreachable', { cause: error });
        throw error;
      }
    };
    return {
      get: (url, step) => send(step, { method: 'GET', url, headers: { accept: 'application/json' } }),
      post: (url, step, body, headers) =>
        send(step, {
          method: 'POST',
          url,
          headers: {
            accept: 'application/json',
            'content-type': body instanceof URLSearchParams ? 'application/x-www-form-urlencoded' : 'application/json',
            ...headers,
          },
          body: body instanceof URLSearchParams ? body.toString() : JSON.stringify(body),
        }),
      address(value, step) {
        const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null;
        if (url === null) throw new OAuthFailure(step, 'incomplete');
        if (!isSafe(url) || url.username !== '' || url.password !== '') throw new OAuthFailure(step, 'unsafe-address');
        return url;
      },
    };
  };
