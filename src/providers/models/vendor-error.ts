import type { ProviderNames } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import { parseForeignJson } from '../../core/documents/foreign-json.ts';
import { isNestedTooDeep } from '../../core/documents/json-depth.ts';
import type { ModelErrorType } from './model-error.ts';
import { boundedWait } from './retry-after.ts';

/** What a provider said about a failure, in whatever shape its API has. */
export interface VendorError {
  /** Codes, types and status names in lower case, most specific first. */
  readonly codes: readonly string[];
  /** HTTP status that the error itself names; null when it names none. */
  readonly httpStatus: number | null;
  /** The provider's text: for the log, and for recognition where an API has no code. */
  readonly text: string;
  readonly retryAfterMs: number | null;
  readonly named: VendorNames;
}

/** What the provider calls the error. Each is an identifier, and never a text; null: it gave none. */
type VendorNames = Omit<ProviderNames, 'requestId'>;

const nothingNamed: VendorNames = { code: null, type: null, param: null };

type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields | null => (isRecord(value) ? value : null);

/** `{error: …}`, `{response: {error: …}}`, a list with one of these (Gemini), or the error itself. */
const errorObject = (frame: unknown): Fields | null => {
  const outer = fields(Array.isArray(frame) ? frame[0] : frame);
  return fields(outer?.['error']) ?? fields(fields(outer?.['response'])?.['error']) ?? outer;
};

const httpStatusOf = (value: unknown): number | null => {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value;
  return typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599 ? status : null;
};

/** Gemini's RetryInfo detail: `{"retryDelay": "17s"}`. */
const retryDelay = (details: unknown): number | null => {
  for (const detail of Array.isArray(details) ? details : []) {
    const match = /^(\d+(?:\.\d+)?)s$/.exec(String(fields(detail)?.['retryDelay'] ?? ''));
    if (match !== null) return boundedWait(Number(match[1]) * 1000);
  }
  return null;
};

const messageOf = (error: Fields | null, frame: unknown): string => {
  const message = error?.['message'] ?? (fields(frame)?.['error'] as unknown);
  if (typeof message === 'string') return message;
  return isNestedTooDeep(frame) ? '(nested too deeply)' : (JSON.stringify(frame) ?? '');
};

const plainIdentifier = /^[A-Za-z0-9_.-]{1,64}$/;

const identifier = (value: unknown): string | null =>
  typeof value === 'string' && plainIdentifier.test(value) ? value : null;

const namesOf = (error: Fields | null): VendorNames => ({
  code: identifier(error?.['code']) ?? identifier(fields(error?.['details'])?.['error_code']),
  // One API calls it a status.
  type: identifier(error?.['type']) ?? identifier(error?.['status']),
  param: identifier(error?.['param']),
});

/** Reads an error document or an error event of any of the known APIs. */
export const readVendorError = (frame: unknown): VendorError => {
  const error = errorObject(frame);
  const inner = fields(error?.['innererror']);
  const named = [
    inner?.['code'],
    error?.['code'],
    fields(error?.['details'])?.['error_code'],
    error?.['type'],
    error?.['status'],
  ];
  return {
    codes: named.filter((code) => typeof code === 'string').map((code) => code.toLowerCase()),
    httpStatus: httpStatusOf(error?.['code']) ?? httpStatusOf(error?.['status']) ?? httpStatusOf(error?.['statusCode']),
    text: messageOf(error, frame),
    retryAfterMs: retryDelay(error?.['details']),
    named: namesOf(error),
  };
};

/** The same for the body of an HTTP error, which may be anything. */
export const readVendorErrorText = (body: string): VendorError => {
  try {
    return readVendorError(parseForeignJson(body));
  } catch {
    // Gateways in front of a provider answer with HTML or plain text; the HTTP status tells enough then.
    return { codes: [], httpStatus: null, text: body, retryAfterMs: null, named: nothingNamed };
  }
};

const contextCodes = new Set([
  'context_length_exceeded',
  'context_window_exceeded',
  'exceed_context_size_error',
  'model_context_window_exceeded',
  'request_too_large',
  'tokens_limit_reached',
]);
const filterCodes = new Set([
  'content_filter',
  'content_policy_violation',
  'invalid_prompt',
  'prohibited_content',
  'responsibleaipolicyviolation',
]);

/** Codes that say no more than "bad request": only under these the text decides about a prompt that is too long. */
const vagueCodes = new Set([
  'invalid_request_error',
  'invalid_argument',
  'badrequesterror',
  'bad_request',
  'badrequest',
  '400',
]);
const tooLong =
  /prompt is too long|maximum context length|input token count.{0,40}exceeds|exceeds? the (?:available )?(?:context|model'?s? context)/i;

/** A refusal with a meaning of its own; null when only the HTTP status counts. */
export const specialRefusal = (error: VendorError, status: number): ModelErrorType | null => {
  if (status === 429 || status >= 500) return null;
  if (error.codes.some((code) => contextCodes.has(code))) return 'context_overflow';
  if (error.codes.some((code) => filterCodes.has(code))) return 'content_filtered';
  return error.codes.every((code) => vagueCodes.has(code)) && tooLong.test(error.text) ? 'context_overflow' : null;
};

/** HTTP status that the vendors document for each error type, for errors that come inside a 200 stream. */
const statusOfCode: readonly (readonly [RegExp, number])[] = [
  [/rate_limit|resource_exhausted|insufficient_quota/, 429],
  [/overloaded/, 529],
  [/context_length|too_large|invalid|bad_request|content_filter|content_policy|prohibited_content/, 400],
  [/authentication|unauthenticated/, 401],
  [/permission|billing/, 403],
  [/not_found/, 404],
  [/unavailable/, 503],
  [/timeout|deadline/, 504],
];

/** The status such an error would have had as an answer of its own; 500 when it does not say. */
export const impliedStatus = (error: VendorError): number => {
  if (error.httpStatus !== null) return error.httpStatus;
  for (const code of error.codes) {
    const status = statusOfCode.find(([pattern]) => pattern.test(code))?.[1];
    if (status !== undefined) return status;
  }
  return 500;
};
