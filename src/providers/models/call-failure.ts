import type { ProviderNames } from '../../contract/errors.ts';
import { parseForeignJson } from '../../core/documents/foreign-json.ts';
import type { CallScope } from './call-scope.ts';
import { ForeignError } from './foreign-error.ts';
import { ModelCallError, type ModelErrorType } from './model-error.ts';
import { retryAfterMs } from './retry-after.ts';
import type { WireFailure } from './transport/wire-exchange.ts';
import { WireError } from './transport/wire-response.ts';
import {
  impliedStatus,
  readVendorError,
  readVendorErrorText,
  specialRefusal,
  type VendorError,
} from './vendor-error.ts';

/** The answer is not what the API promises: no JSON, no known event, or no end. */
export class MalformedAnswerError extends Error {
  override readonly name = 'MalformedAnswerError';
}

/** No token could be had for the call. */
export class CredentialError extends Error {
  override readonly name = 'CredentialError';
}

export const credentialMissing = (provider: string, cause?: unknown): ModelCallError =>
  new ModelCallError('provider_credential_unresolved', `Provider "${provider}" has no usable credential.`, {
    provider,
    cause,
  });

export const canceled = (provider: string): ModelCallError =>
  new ModelCallError('canceled', `The call of provider "${provider}" was canceled.`, { provider });

export const contentFiltered = (
  provider: string,
  details: { httpStatus?: number; cause?: unknown } = {},
): ModelCallError =>
  new ModelCallError('content_filtered', `Provider "${provider}" refused the content.`, {
    provider,
    ...details,
  });

/**
 * The answer stopped before the provider said that it was complete. It counts as a lost connection: a proxy in between
 * ends a stream in good order when the provider behind it has died.
 */
export const unfinished = (provider: string): ModelCallError =>
  new ModelCallError('provider_unavailable', `Provider "${provider}" broke off its answer.`, {
    provider,
    cause: new ForeignError('The stream ended without a finish reason', null),
  });

const statusType = (status: number): ModelErrorType => (status === 429 ? 'provider_rate_limited' : 'provider_error');

const refusals: Partial<Record<ModelErrorType, (provider: string) => string>> = {
  context_overflow: (provider) => `Provider "${provider}" refused the prompt as too long.`,
  content_filtered: (provider) => `Provider "${provider}" refused the content.`,
};

/** Undefined where the provider named nothing. A name in which the credential stands is left out. */
const reasonOf = (scope: CallScope, { named }: VendorError): ProviderNames | undefined => {
  const shown = (name: string | null): string | null =>
    name !== null && scope.secret !== null && name.includes(scope.secret) ? null : name;
  const [code, type, param] = [shown(named.code), shown(named.type), shown(named.param)];
  return code === null && type === null && param === null
    ? undefined
    : { code, type, param, requestId: scope.requestId };
};

const refused = (scope: CallScope, error: VendorError, status: number, message: string): ModelCallError => {
  const type = specialRefusal(error, status) ?? statusType(status);
  return new ModelCallError(type, refusals[type]?.(scope.provider) ?? message, {
    provider: scope.provider,
    httpStatus: status,
    retryAfterMs: retryAfterMs(scope.headers, Date.now()) ?? error.retryAfterMs ?? undefined,
    reason: reasonOf(scope, error),
    cause: new ForeignError(error.text, status),
  });
};

/** An HTTP answer other than 2xx. */
export const httpFailure = (scope: CallScope, status: number, body: string): ModelCallError =>
  refused(scope, readVendorErrorText(body), status, `Provider "${scope.provider}" answered with HTTP ${status}.`);

/** An error event inside a 200 answer; it counts as the HTTP status that the vendor documents for its type. */
export const eventFailure = (scope: CallScope, frame: unknown): ModelCallError => {
  const error = readVendorError(frame);
  const status = impliedStatus(error);
  return refused(
    scope,
    error,
    status,
    `Provider "${scope.provider}" reported an error in its answer (HTTP ${status}).`,
  );
};

const wireMessages: Record<WireFailure['kind'], (provider: string) => string> = {
  unreachable: (provider) => `Provider "${provider}" could not be reached.`,
  cut: (provider) => `The connection to provider "${provider}" was lost.`,
  timeout: (provider) => `Provider "${provider}" did not answer in time.`,
  'too-large': (provider) => `Provider "${provider}" sent more than an answer may hold.`,
  invalid: (provider) => `The request to provider "${provider}" could not be sent.`,
};

const wireTypes: Record<WireFailure['kind'], ModelErrorType> = {
  unreachable: 'provider_unavailable',
  cut: 'provider_unavailable',
  timeout: 'provider_timeout',
  'too-large': 'provider_error',
  invalid: 'provider_error',
};

export const wireFailure = (provider: string, failure: WireFailure): ModelCallError =>
  new ModelCallError(wireTypes[failure.kind], wireMessages[failure.kind](provider), {
    provider,
    cause: failure.cause,
  });

interface VendorLibraryError {
  readonly statusCode?: unknown;
  readonly responseBody?: unknown;
  readonly data?: unknown;
}

const causeOfType = <T extends Error>(error: unknown, type: abstract new (...parameters: never[]) => T): T | null => {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth += 1) {
    if (current instanceof type) return current;
    current = current.cause;
  }
  return null;
};

/** Before anything was sent only our own request can be at fault; afterwards the answer is. */
const unreadable = (scope: CallScope, error: unknown): ModelCallError => {
  const message = scope.sent
    ? `Provider "${scope.provider}" sent an answer that could not be read.`
    : `The request cannot be expressed for provider "${scope.provider}".`;
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return new ModelCallError('provider_error', message, {
    provider: scope.provider,
    httpStatus: scope.sent ? (scope.status ?? undefined) : undefined,
    cause: new ForeignError(text, scope.status),
  });
};

const fieldsOf = (value: unknown): object | null => (typeof value === 'object' && value !== null ? value : null);

const parsed = (text: string): unknown => {
  try {
    return parseForeignJson(text);
  } catch {
    // Not an event then.
    return null;
  }
};

/** The event inside what the vendor library made of it; null when the error is not about an event. */
const reportedEvent = (error: unknown): object | null => {
  const members = fieldsOf(error) as VendorLibraryError | null;
  if (!(error instanceof Error)) return fieldsOf(members?.data) ?? members;
  // Before the first output an event is thrown as if it had been the HTTP answer, with a status that nobody sent.
  if (error.name !== 'AI_APICallError' || typeof members?.statusCode !== 'number' || members.statusCode < 400)
    return null;
  return fieldsOf(members.data) ?? fieldsOf(parsed(responseBody(error)));
};

const responseBody = (error: unknown): string => {
  const body = (fieldsOf(error) as VendorLibraryError | null)?.responseBody;
  return typeof body === 'string' ? body : '';
};

/** Translates whatever ended a call, once. What we saw on the wire counts before what a library made of it. */
export const callFailure = (scope: CallScope, error: unknown): ModelCallError => {
  if (scope.stopped === 'timeout') return wireFailure(scope.provider, { kind: 'timeout', cause: undefined });
  if (scope.stopped === 'canceled') return canceled(scope.provider);
  if (error instanceof ModelCallError) return error;
  const credential = causeOfType(error, CredentialError);
  if (credential !== null) return credentialMissing(scope.provider, credential);
  if (scope.status !== null && (scope.status < 200 || scope.status > 299))
    return httpFailure(scope, scope.status, responseBody(error));
  const failure = scope.wireFailure ?? causeOfType(error, WireError)?.failure ?? null;
  if (failure !== null) return wireFailure(scope.provider, failure);
  const event = reportedEvent(error);
  return event === null ? unreadable(scope, error) : eventFailure(scope, event);
};
