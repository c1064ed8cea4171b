import type { IncomingMessage } from 'node:http';

const requestHeaders = [
  'Authorization',
  'X-Api-Key',
  'X-Service-Tenant',
  'Content-Type',
  'Idempotency-Key',
  'Prefer',
  'Last-Event-ID',
];
/** What clients of other protocols send beside those, on every request: of OpenAI's API, MCP and A2A. */
const foreignHeader = /^(?:x-stainless|openai|mcp|a2a|x-a2a)-[a-z0-9-]{1,64}$/i;
const mostForeign = 32;
const exposedHeaders = [
  'Location',
  'Content-Location',
  'X-Run-Id',
  'Idempotency-Replayed',
  'Preference-Applied',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'ETag',
  'X-Acp-Warning',
  'X-Request-Id',
  'X-Should-Retry',
  'Retry-After-Ms',
  'MCP-Protocol-Version',
  'A2A-Version',
  'A2A-Extensions',
];

const foreignIn = ({ headers }: IncomingMessage): string[] =>
  (headers['access-control-request-headers'] ?? '')
    .split(',', mostForeign)
    .map((name) => name.trim())
    .filter((name) => foreignHeader.test(name));

export type Cors = NonNullable<ReturnType<typeof createCors>>;

/** Cross-origin rules for a list of exact origins; null where the list is empty: then no such header is ever sent. */
export const createCors = (allowedOrigins: readonly string[]) => {
  if (allowedOrigins.length === 0) return null;
  const byOrigin = new Map(
    allowedOrigins.map((origin) => [
      origin,
      {
        vary: 'Origin',
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposedHeaders.join(', '),
      },
    ]),
  );
  return {
    /** Fields for every answer to this request; null for a caller without a listed origin. */
    fieldsFor: ({ headers }: IncomingMessage) =>
      headers.origin === undefined ? null : (byOrigin.get(headers.origin) ?? null),
    /** Further fields of the answer to a preflight on a path with these methods. */
    preflightFields: (request: IncomingMessage, methods: readonly string[]) => ({
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': [...requestHeaders, ...foreignIn(request)].join(', '),
      'access-control-max-age': '600',
    }),
  };
};

/** True for the question that browsers ask before a cross-origin request. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
