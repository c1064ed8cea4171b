import { type ErrorCode, errorTable } from '../contract/errors.ts';
import { openAiStatus } from '../contract/openai-error.ts';
import { isForEverybody, type Operation } from '../contract/operation.ts';
import type { OperationEntry } from '../core/dispatch.ts';
import type { JsonObject } from './openapi-schemas.ts';

// A request may be limited before its caller is known (`RateLimit:Partition`).
const always: readonly ErrorCode[] = ['request-malformed', 'rate-limited', 'internal'];
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
  'identity-unavailable',
  'migrating',
];
/** What an operation for any caller does not ask. */
const withRole: ReadonlySet<ErrorCode> = new Set(['insufficient-role', 'insufficient-scope', 'migrating']);
const withInput: readonly ErrorCode[] = ['validation-failed'];
const withBody: readonly ErrorCode[] = ['malformed-json', 'payload-too-large', 'unsupported-media-type'];

const withStream: readonly ErrorCode[] = ['too-many-streams'];
const withUpload: readonly ErrorCode[] = ['multipart-malformed', 'payload-too-large', 'unsupported-media-type'];

type StatusOf = (code: ErrorCode) => number;

const tableStatus: StatusOf = (code) => errorTable[code].status;

const byStatus = (codes: Iterable<ErrorCode>, statusOf = tableStatus): ReadonlyMap<number, readonly ErrorCode[]> =>
  Map.groupBy(codes, statusOf);

/** Every code that an operation may answer, its own and those of the pipeline before it. */
const problemCodes = (operation: Operation): ReadonlySet<ErrorCode> => {
  const { body, params, query, headers, upload, role } = operation;
  return new Set<ErrorCode>([
    ...always,
    ...(isForEverybody(operation) ? [] : withCredential.filter((code) => role !== null || !withRole.has(code))),
    ...((body ?? params ?? query ?? headers) ? withInput : []),
    ...(body === undefined ? [] : withBody),
    ...(upload === undefined ? [] : withUpload),
    ...(operation.stream === undefined ? [] : withStream),
    ...operation.errors,
  ]);
};

const headersOf = (status: number): JsonObject => {
  if (status === 401) return { headers: { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } } };
  if (status === 429 || status === 503)
    return { headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } };
  return {};
};

const exampleOf = (status: number, code: ErrorCode): JsonObject => ({
  type: `urn:acp:problem:${code}`,
  title: errorTable[code].title,
  status,
  detail: 'Explanation of the problem in this request',
  instance: '/api/agents/greeter',
  code,
  requestId: '01a1f906-6509-7dcb-ba77-3d5f6d8c0388',
});

type Envelope = NonNullable<Operation['envelope']> | 'Problem';

const contentOf: Readonly<Record<Envelope, (status: number, code: ErrorCode) => JsonObject>> = {
  Problem: (status, code) => ({
    'application/problem+json': {
      schema: { $ref: '#/components/schemas/Problem' },
      example: exampleOf(status, code),
    },
  }),
  OpenAi: () => ({ 'application/json': { schema: { $ref: '#/components/schemas/OpenAiError' } } }),
  Otlp: () => ({
    'application/x-protobuf': { schema: { type: 'string', format: 'binary', description: '`google.rpc.Status`' } },
    'application/json': { schema: { $ref: '#/components/schemas/OtlpStatus' } },
  }),
};

const responseOf = (envelope: Envelope, status: number, codes: readonly ErrorCode[]): JsonObject => ({
  description: codes.map((code) => `- \`${code}\`: ${errorTable[code].title}`).join('\n'),
  ...headersOf(status),
  content: contentOf[envelope](status, codes[0] ?? 'internal'),
});

/** The codes that most operations share, by status. */
const shared = byStatus([...always, ...withCredential, ...withInput, ...withBody]);
const sharedName = (envelope: Envelope, status: number): string => `${envelope}${status}`;

const sharedReference = (envelope: Envelope, status: number): string =>
  `#/components/responses/${sharedName(envelope, status)}`;

const envelopesOf = (entries: readonly OperationEntry[]): readonly Envelope[] => [
  ...new Set<Envelope>(['Problem', ...entries.flatMap(({ operation }) => operation.envelope ?? [])]),
];

/** Responses that operations refer to when they have no codes of their own for a status. */
export const sharedProblemResponses = (entries: readonly OperationEntry[]): Record<string, JsonObject> => {
  const used = new Set(
    entries.flatMap(({ operation }) => Object.values(problemResponses(operation)).map(({ $ref }) => $ref)),
  );
  return Object.fromEntries(
    envelopesOf(entries).flatMap((envelope) =>
      [...shared]
        .filter(([status]) => used.has(sharedReference(envelope, status)))
        .map(([status, codes]) => [sharedName(envelope, status), responseOf(envelope, status, codes)]),
    ),
  );
};

/** One response per status, with the codes that it may carry; written out for each status of `own`, which is another answer, too. */
export const problemResponses = (
  operation: Operation,
  own: ReadonlySet<number> = new Set(),
): Record<string, JsonObject> => {
  const { envelope = 'Problem' } = operation;
  const statusOf = envelope === 'OpenAi' ? openAiStatus : tableStatus;
  return Object.fromEntries(
    [...byStatus(problemCodes(operation), statusOf)].map(([status, codes]) => {
      const isShared = !own.has(status) && codes.join() === shared.get(status)?.join();
      return [status, isShared ? { $ref: sharedReference(envelope, status) } : responseOf(envelope, status, codes)];
    }),
  );
};

/** The schemas of the other forms of errors, where an operation has them. */
export const envelopeSchemas = (entries: readonly OperationEntry[]): Record<string, JsonObject> => {
  const envelopes = new Set(entries.map(({ operation }) => operation.envelope));
  return {
    ...(envelopes.has('OpenAi') ? { OpenAiError: openAiErrorSchema } : {}),
    ...(envelopes.has('Otlp') ? { OtlpStatus: otlpStatusSchema } : {}),
  };
};

const text = (description: string): JsonObject => ({ type: 'string', description });

const openAiErrorSchema: JsonObject = {
  type: 'object',
  description: 'An error of the OpenAI API',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['message', 'type', 'param', 'code'],
      properties: {
        message: { type: 'string' },
        type: { type: 'string', examples: ['invalid_request_error', 'rate_limit_error'] },
        param: { type: ['string', 'null'] },
        code: { type: ['string', 'null'] },
      },
    },
  },
};

const otlpStatusSchema: JsonObject = {
  type: 'object',
  description: '`google.rpc.Status`, as exporters of OpenTelemetry expect it',
  properties: { code: { type: 'integer' }, message: { type: 'string' } },
};

/** The shape of every problem. Written out, since extension members are optional and a later version may add some. */
export const problemSchema: JsonObject = {
  type: 'object',
  description: 'Problem details (RFC 9457) with the extensions of this service',
  required: ['type', 'title', 'status', 'detail', 'instance', 'code', 'requestId'],
  properties: {
    type: text('`urn:acp:problem:<code>`'),
    title: text('The same for every problem of this code'),
    status: { type: 'integer' },
    detail: text('Explanation of the problem in this request'),
    instance: text('Path of the request'),
    code: {
      type: 'string',
      description: 'Stable error code, for programs',
      examples: ['validation-failed', 'run-not-found'],
    },
    requestId: { type: 'string', format: 'uuid', description: 'ID of the request in the log of the service' },
    errors: {
      type: 'array',
      description: 'Invalid properties of the request',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: {
          path: text('Path of the property, such as `model.provider` or `toolNames[2]`; empty for the complete body'),
          message: { type: 'string' },
        },
      },
    },
    errorType: text('Error type of the failed run'),
    provider: {
      type: 'object',
      description: 'Identifiers with which a model provider rejected a call',
      properties: {
        code: { type: ['string', 'null'] },
        type: { type: ['string', 'null'] },
        param: { type: ['string', 'null'] },
        requestId: text('ID of the request whose log entry has the details'),
      },
    },
    guardName: text('Guard that blocked'),
    ruleName: text('Rule of the guard that blocked'),
    retryAfterMs: { type: 'integer' },
    missingVersion: { type: 'integer' },
    estimatedTokens: { type: 'integer' },
    allowedTokens: { type: 'integer' },
    quotaMetric: { type: 'string', enum: ['Runs', 'Tokens', 'Cost'] },
    quotaPeriod: { type: 'string', enum: ['Daily', 'Monthly'] },
    quotaLimit: { type: 'number' },
    quotaUsed: { type: 'number' },
    quotaResetsAt: { type: 'string', format: 'date-time' },
    requiredRole: { type: 'string' },
    requiredScope: { type: 'string' },
  },
};
