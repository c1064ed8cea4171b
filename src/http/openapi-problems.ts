import { type ErrorCode, errorTable } from '../contract/errors.ts';
import type { Operation } from '../contract/operation.ts';
import type { JsonObject } from './openapi-schemas.ts';

const shared: readonly ErrorCode[] = ['request-malformed', 'internal'];
const withCredential: readonly ErrorCode[] = [
  'ambiguous-credentials',
  'invalid-tenant',
  'unauthenticated',
  'insufficient-role',
  'insufficient-scope',
  'remote-access-denied',
  'origin-denied',
  'tenant-mismatch',
  'tenant-rejected',
  'store-unavailable',
  'migrating',
];
const withInput: readonly ErrorCode[] = ['validation-failed'];
const withBody: readonly ErrorCode[] = ['malformed-json', 'payload-too-large', 'unsupported-media-type'];

/** Every code that an operation may answer, its own and those of the pipeline before it. */
export const problemCodes = (operation: Operation): ReadonlySet<ErrorCode> => {
  const { body, params, query, headers, role } = operation;
  return new Set<ErrorCode>([
    ...shared,
    ...(role === null ? [] : withCredential),
    ...((body ?? params ?? query ?? headers) ? withInput : []),
    ...(body === undefined ? [] : withBody),
    ...operation.errors,
  ]);
};

const headersOf = (status: number): JsonObject => ({
  'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
  ...(status === 401 ? { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } } : {}),
  ...(status === 429 || status === 503 ? { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } : {}),
});

/** One response per status, with the codes that it may carry. */
export const problemResponses = (operation: Operation): Record<string, JsonObject> => {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of problemCodes(operation)) {
    const { status } = errorTable[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const responses: Record<string, JsonObject> = {};
  for (const [status, codes] of byStatus)
    responses[String(status)] = {
      description: codes.map((code) => `- \`${code}\`: ${errorTable[code].title}`).join('\n'),
      headers: headersOf(status),
      content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
    };
  return responses;
};

const text = (description: string): JsonObject => ({ type: 'string', description });

/** The shape of every problem. Written out, since extension members are optional and a later version may add some. */
export const problemSchema: JsonObject = {
  type: 'object',
  description: 'Problem details (RFC 9457) with the extensions of this service',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId'],
  properties: {
    type: text('`urn:acp:problem:<code>`'),
    title: text('The same for every problem of this code'),
    status: { type: 'integer' },
    detail: text('What is wrong with this request'),
    instance: text('Path of the request'),
    code: { type: 'string', description: 'Stable id, for programs', examples: ['validation-failed', 'run-not-found'] },
    requestId: { type: 'string', format: 'uuid', description: 'Finds the request in the log of the service' },
    errors: {
      type: 'array',
      description: 'What is wrong with which member',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: text('`model.provider` or `toolNames[2]`; empty for the whole'),
          message: { type: 'string' },
        },
      },
    },
    errorType: text('Error type of the failed run'),
    retryAfterMs: { type: 'integer' },
    missingVersion: { type: 'integer' },
    estimatedTokens: { type: 'integer' },
    allowedTokens: { type: 'integer' },
    requiredRole: { type: 'string' },
    requiredScope: { type: 'string' },
  },
};
