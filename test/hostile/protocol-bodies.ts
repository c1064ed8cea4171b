import Type, { type TSchema } from 'typebox';
import { mcpMeta, statelessVersion } from '../../src/contract/mcp.ts';
import { JsonValue } from '../../src/contract/schema.ts';
import { SendMessageRequest } from '../../src/features/a2a/a2a.schema.ts';
import { type HostileCall, hostileCalls } from './schema-bodies.ts';

const rpc = (method: string, params: TSchema): TSchema =>
  Type.Object({ jsonrpc: Type.Literal('2.0'), id: Type.Literal(1), method: Type.Literal(method), params });

const text = Type.String();
const optional = Type.Optional;
const { Array: list } = Type;

const LegacyPart = Type.Object({ kind: Type.Literal('text'), text, metadata: optional(JsonValue) });
const LegacyMessage = Type.Object({
  kind: Type.Literal('message'),
  messageId: text,
  role: Type.Literal('user'),
  parts: list(LegacyPart, { minItems: 1 }),
  metadata: optional(JsonValue),
  referenceTaskIds: optional(list(text)),
});

const meta = Type.Object({
  [mcpMeta.protocolVersion]: Type.Literal(statelessVersion),
  [mcpMeta.clientInfo]: Type.Object({ name: text, version: text }),
  [mcpMeta.clientCapabilities]: Type.Object({}),
});
const McpCall = Type.Object({ name: Type.Literal('helper'), arguments: Type.Object({ message: text }), _meta: meta });
const AnyArguments = Type.Object({ name: Type.Literal('helper'), arguments: JsonValue, _meta: meta });

const hex = (length: number) => Type.Literal('a'.repeat(length));
const Value: TSchema = Type.Union([
  Type.Object({ stringValue: text }),
  Type.Object({ arrayValue: Type.Object({ values: list(Type.Object({ intValue: Type.Literal('1') })) }) }),
  Type.Object({
    kvlistValue: Type.Object({ values: list(Type.Object({ key: text, value: Type.Object({ stringValue: text }) })) }),
  }),
]);
const Attribute = Type.Object({ key: text, value: Value });
const Span = Type.Object({
  traceId: hex(32),
  spanId: hex(16),
  name: text,
  startTimeUnixNano: Type.Literal('1760000000000000000'),
  endTimeUnixNano: Type.Literal('1760000001000000000'),
  attributes: optional(list(Attribute)),
  events: optional(list(Type.Object({ name: text, attributes: optional(list(Attribute)) }))),
  links: optional(list(Type.Object({ traceId: hex(32), spanId: hex(16), attributes: optional(list(Attribute)) }))),
});
const Traces = Type.Object({
  resourceSpans: list(
    Type.Object({
      resource: optional(Type.Object({ attributes: list(Attribute) })),
      scopeSpans: list(Type.Object({ scope: optional(Type.Object({ name: text })), spans: list(Span) })),
    }),
  ),
});

const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const mcp = { ...json, 'mcp-protocol-version': statelessVersion, 'mcp-method': 'tools/call', 'mcp-name': 'helper' };

/** Bodies of the operations whose protocol reads them: the table has no schema of theirs. */
export const protocolCalls: Readonly<Record<string, readonly HostileCall[]>> = {
  'a2a.call': [
    ...hostileCalls(rpc('SendMessage', SendMessageRequest), { ...json, 'a2a-version': '1.0' }),
    ...hostileCalls(rpc('message/send', Type.Object({ message: LegacyMessage })), json),
  ],
  'mcpEndpoint.call': [
    ...hostileCalls(rpc('tools/call', McpCall), mcp),
    ...hostileCalls(rpc('tools/call', AnyArguments), mcp),
    ...hostileCalls(rpc('initialize', Type.Object({ protocolVersion: text, capabilities: JsonValue })), json),
  ],
  'traces.receive': hostileCalls(Traces, json),
  'triggers.accept': hostileCalls(JsonValue, json),
};
