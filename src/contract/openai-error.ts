import { type AcpError, type ErrorCode, errorTable } from './errors.ts';
import { isRecord } from './record.ts';

/** An error as clients of the OpenAI API know it. */
export interface OpenAiError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
}

/** Codes that this API has a name of its own for. */
const ownNames: Readonly<Partial<Record<ErrorCode, string>>> = {
  'agent-not-found': 'model_not_found',
  'run-not-allowed': 'permission_denied',
};

const openAiCode = (code: ErrorCode): string => ownNames[code] ?? code.replaceAll('-', '_');

/** The status of an error here. Clients of this API recognize the rate limit of a provider by its status alone. */
export const openAiStatus = (code: ErrorCode): number =>
  code === 'provider-rate-limited' ? 429 : errorTable[code].status;

const typeOf = (code: ErrorCode): string => {
  if (code === 'quota-exceeded') return 'insufficient_quota';
  const status = openAiStatus(code);
  if (status === 401) return 'authentication_error';
  if (status === 403) return 'permission_error';
  if (status === 429) return 'rate_limit_error';
  return status >= 500 ? 'server_error' : 'invalid_request_error';
};

/** `code` and `message` as the API tells them of a failed run, which has no request that it was wrong in. */
export const openAiFailure = (code: ErrorCode, message: string): OpenAiError => ({
  message,
  type: typeOf(code),
  param: null,
  code: openAiCode(code),
});

const wordsOf = ({ code, message, details: { errors: [first] = [] } }: AcpError): string => {
  // Whoever comes from another API asks for a model, and has to learn where the names are that can be used here.
  if (code === 'agent-not-found') return `${message} The list of models has the names that there are.`;
  // The whole body has no path.
  return first === undefined || message.includes(first.message)
    ? message
    : `${message} ${first.path === '' ? 'It' : first.path} ${first.message}.`;
};

export const toOpenAiError = (error: AcpError): OpenAiError => {
  const { code, details } = error;
  const param = code === 'agent-not-found' ? 'model' : details.errors?.[0]?.path;
  return {
    message: wordsOf(error),
    type: typeOf(code),
    param: param === undefined || param === '' ? null : param,
    code: openAiCode(code),
  };
};

/**
 * What keeps the clients of this API from sending again what would fail again or has begun already: they repeat 408, 409,
 * 429 and all failures of a server by themselves.
 */
export const openAiRetryHeaders = ({ code, details }: AcpError): Record<string, string> => {
  const status = openAiStatus(code);
  const isFinal =
    details.runId !== undefined || code === 'quota-exceeded' || (status === 409 && code !== 'session-busy');
  const waits = status === 429 || status === 503;
  return {
    ...(isFinal ? { 'x-should-retry': 'false' } : {}),
    ...(waits ? { 'retry-after-ms': String(Math.max(0, Math.ceil(details.retryAfterMs ?? 1000))) } : {}),
  };
};

const codesByName = new Map(Object.entries(ownNames).map(([code, name]) => [name, code]));

/** What an answer in this envelope says; null for any other body. The code is one of the table only if this version knows it. */
export const readOpenAiError = (body: unknown): { readonly code: string; readonly message: string } | null => {
  if (!isRecord(body) || !isRecord(body['error'])) return null;
  const { code, message } = body['error'];
  if (typeof message !== 'string') return null;
  const name = typeof code === 'string' ? code : '';
  return { code: codesByName.get(name) ?? name.replaceAll('_', '-'), message };
};
