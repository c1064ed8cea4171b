import { STATUS_CODES } from 'node:http';
import type { TObject, TSchema } from 'typebox';
import { isForEverybody, type Operation, type RaisedAuthority } from '../contract/operation.ts';
import { tagDescriptions } from '../contract/tags.ts';
import type { OperationEntry } from '../core/dispatch.ts';
import { envelopeSchemas, problemResponses, problemSchema, sharedProblemResponses } from './openapi-problems.ts';
import { createSchemaComponents, type JsonObject, type SchemaComponents } from './openapi-schemas.ts';

export interface OpenApiOptions {
  readonly version: string;
  /** Mount point, such as `/acp`; empty for the root. */
  readonly prefix: string;
  readonly title?: string;
}

const description = `Version v1 of the HTTP interface.

Bodies are JSON, uploads are \`multipart/form-data\`, event streams are \`text/event-stream\`, and every error is a problem
document (RFC 9457) whose \`code\` is stable. Every answer has an \`X-Request-Id\`, which is also in the log. Enumeration
words may be sent in any case. What belongs to another tenant is answered as if it were not there.

Send a credential as \`Authorization: Bearer <token>\` or an API key as \`X-Api-Key: <key>\`. Each operation names the role
that it needs (\`x-acp-role\`) and the scope that an API key must have (\`x-acp-scope\`; of several each one). What needs more
when the body says so is in \`x-acp-raised\`.`;

const headers = {
  'Retry-After': { description: 'Seconds to wait before another try', schema: { type: 'integer', minimum: 0 } },
  'WWW-Authenticate': { description: 'Always `Bearer`', schema: { type: 'string' } },
};

const securitySchemes = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description: 'The shared token of the host, an API key, or a JWT where OIDC is set up',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'X-Api-Key', description: 'An API key' },
};

const parametersIn = (
  place: 'path' | 'query' | 'header',
  schema: TObject | undefined,
  components: SchemaComponents,
): JsonObject[] => {
  if (schema === undefined) return [];
  const required = new Set<string>(schema.required ?? []);
  return Object.entries<TSchema>(schema.properties).map(([name, member]) => {
    const { description: about, ...rest } = components.place(member);
    return {
      name,
      in: place,
      required: place === 'path' || required.has(name),
      ...(about === undefined ? {} : { description: about }),
      schema: rest,
    };
  });
};

/** One frame as an object, which is as far as OpenAPI 3.1 can describe an event stream. */
const frameSchema = (event: JsonObject): JsonObject => ({
  type: 'object',
  description:
    'One frame of the stream. The `error` frame, which is no part of the log, has no id. Lines that begin with a colon only keep the stream alive.',
  required: ['event', 'data'],
  properties: {
    id: {
      type: 'integer',
      minimum: 0,
      description: 'Sequence in the log; send it as `Last-Event-ID` to go on after it',
    },
    event: { type: 'string', description: 'Type of the event' },
    data: event,
  },
});

/** OTLP has a binary form in addition to JSON, in either direction. */
const protobuf: JsonObject = { 'application/x-protobuf': { schema: { type: 'string', format: 'binary' } } };

const answerType = ({ page }: Operation): string => (page === true ? 'text/html' : 'application/json');

const successResponses = (operation: Operation, components: SchemaComponents): Record<string, JsonObject> => {
  const responses: Record<string, JsonObject> = {};
  for (const [status, schema] of Object.entries(operation.responses))
    responses[status] = {
      description: STATUS_CODES[status] ?? 'Success',
      ...(schema === null ? {} : { content: { [answerType(operation)]: { schema: components.place(schema) } } }),
    };
  if (operation.envelope === 'Otlp')
    responses['200'] = {
      description: operation.download,
      content: { ...protobuf, ...(responses['200']?.['content'] as JsonObject | undefined) },
    };
  else if (operation.download !== undefined)
    responses['200'] = {
      description: operation.download,
      headers: {
        ETag: { description: 'SHA-256 of the bytes, in quotes', schema: { type: 'string' } },
        'Content-Disposition': { description: 'Always `attachment`, with the file name', schema: { type: 'string' } },
      },
      content: { '*/*': { schema: { type: 'string', format: 'binary' } } },
    };
  if (operation.stream === undefined) return responses;
  const streamed = { 'text/event-stream': { schema: frameSchema(components.place(operation.stream)) } };
  const usual = responses['200'] ?? { description: 'OK' };
  responses['200'] = { ...usual, content: { ...streamed, ...(usual['content'] as JsonObject | undefined) } };
  return responses;
};

/** The protocol's own schemas say the rest. */
const rpcMessage: JsonObject = {
  type: 'object',
  required: ['jsonrpc'],
  properties: { jsonrpc: { const: '2.0' }, method: { type: 'string' }, params: { type: 'object' } },
};

const otlpRequest: JsonObject = {
  ...protobuf,
  'application/json': {
    schema: { type: 'object', properties: { resourceSpans: { type: 'array', items: { type: 'object' } } } },
  },
};

const requestBody = (
  { body, upload, signed, ownProtocol, envelope }: Operation,
  components: SchemaComponents,
): JsonObject | null => {
  if (signed === true) return { required: true, content: { '*/*': { schema: { type: 'string', format: 'binary' } } } };
  if (envelope === 'Otlp') return { required: true, content: otlpRequest };
  if (ownProtocol === true) return { required: true, content: { 'application/json': { schema: rpcMessage } } };
  if (upload !== undefined) {
    const file = { type: 'string', format: 'binary', description: upload.description };
    const schema = { type: 'object', required: [upload.part], properties: { [upload.part]: file } };
    return { required: true, content: { 'multipart/form-data': { schema } } };
  }
  if (body === undefined) return null;
  return {
    required: !Object.hasOwn(body, '~optional'),
    content: { 'application/json': { schema: components.place(body) } },
  };
};

const raisedObject = ({ member, ...rest }: RaisedAuthority): JsonObject => ({ member: member.join('.'), ...rest });

const contentOf = (response: JsonObject | undefined): JsonObject => (response?.['content'] ?? {}) as JsonObject;

/** Answers and problems by status; a status that is both, as in a protocol of its own, has a media type of each. */
const responsesOf = (operation: Operation, components: SchemaComponents): Record<string, JsonObject> => {
  const answers = successResponses(operation, components);
  const problems = problemResponses(operation, new Set(Object.keys(answers).map(Number)));
  const both = Object.keys(problems).filter((status) => answers[status] !== undefined);
  const joined = both.map((status) => {
    const content = { ...contentOf(answers[status]), ...contentOf(problems[status]) };
    return [status, { ...problems[status], content }] as const;
  });
  return { ...answers, ...problems, ...Object.fromEntries(joined) };
};

const operationObject = ({ id, operation }: OperationEntry, components: SchemaComponents): JsonObject => {
  const parameters = [
    ...parametersIn('path', operation.params, components),
    ...parametersIn('query', operation.query, components),
    ...parametersIn('header', operation.headers, components),
  ];
  const body = requestBody(operation, components);
  return {
    operationId: id,
    tags: [operation.tag],
    summary: operation.summary,
    ...(operation.description === undefined ? {} : { description: operation.description }),
    ...(isForEverybody(operation) ? { security: [] } : {}),
    ...(operation.role === null ? {} : { 'x-acp-role': operation.role, 'x-acp-scope': operation.scope }),
    ...(operation.raised === undefined ? {} : { 'x-acp-raised': operation.raised.map(raisedObject) }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === null ? {} : { requestBody: body }),
    responses: responsesOf(operation, components),
  };
};

/**
 * The OpenAPI 3.1 document of a table of operations: pure data, the same for every process of a version. Schemas with a
 * title become components. Throws when two different schemas have one title.
 */
export const buildOpenApi = (
  entries: readonly OperationEntry[],
  { version, prefix, title }: OpenApiOptions,
): JsonObject => {
  const components = createSchemaComponents();
  const paths: Record<string, Record<string, JsonObject>> = {};
  for (const entry of entries) {
    const { path, method } = entry.operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: operationObject(entry, components) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: title ?? 'Agent Control Plane',
      version,
      description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: prefix === '' ? '/' : prefix }],
    security: [{ bearer: [] }, { apiKey: [] }],
    tags: [...new Set(entries.map(({ operation }) => operation.tag))].map((name) => {
      const { [name]: about } = tagDescriptions;
      return about === undefined ? { name } : { name, description: about };
    }),
    paths,
    components: {
      schemas: { Problem: problemSchema, ...envelopeSchemas(entries), ...components.all() },
      responses: sharedProblemResponses(entries),
      headers,
      securitySchemes,
    },
  };
};
