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
];

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
    preflightFields: (methods: readonly string[]) => ({
      'access-control-allow-methods': methods.join(', '),
      'access-control-allow-headers': requestHeaders.join(', '),
      'access-control-max-age': '600',
    }),
  };
};

/** True for the question that browsers ask before a cross-origin request. */
export const isPreflight = ({ method, headers }: IncomingMessage): boolean =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
