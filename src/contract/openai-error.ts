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

const typeOf = (code: ErrorCode): string => {
  if (code === 'quota-exceeded') return 'insufficient_quota';
  const { status } = errorTable[code];
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

/** Results of calls are items of the input here. */
const ownPath = (path: string): string => (/^toolResults\b/.test(path) ? 'input' : path);

export const toOpenAiError = ({ code, message, details }: AcpError): OpenAiError => {
  const [first] = (details.errors ?? []).map((error) => ({ ...error, path: ownPath(error.path) }));
  const param = code === 'agent-not-found' ? 'model' : first?.path;
  return {
    // The whole body has no path, and its message stands in the error's own.
    message:
      first === undefined || message.includes(first.message) ? message : `${message} ${first.path} ${first.message}.`,
    type: typeOf(code),
    param: param === undefined || param === '' ? null : param,
    code: openAiCode(code),
  };
};

/**
 * What keeps the clients of this API from sending again what would fail again or has begun already: they repeat 408, 409,
 * 429 and all failures of a server by themselves.
 */
export const openAiRetryHeaders = ({ code, status, details }: AcpError): Record<string, string> => {
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
