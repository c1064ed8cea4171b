import { RpcError, type RpcMessage, type RpcParams, type RpcRequest, rpcCodes } from '../../contract/json-rpc.ts';
import { mcpCodes, mcpMeta, statelessVersion } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';
import type { Json } from '../../contract/schema.ts';
import type { McpHeaders } from './mcp-endpoint.operations.ts';

export type Generation = 'stateless' | 'handshake';

const dated = /^\d{4}-\d{2}-\d{2}$/;

export const metaOf = (params: RpcParams): Readonly<Record<string, Json>> => {
  const { _meta: meta } = params;
  return isRecord(meta) ? (meta as Readonly<Record<string, Json>>) : {};
};

/** By the message, or by a version that no handshake has. */
export const generationOf = (message: RpcMessage, headers: McpHeaders): Generation => {
  const named = 'params' in message && mcpMeta.protocolVersion in metaOf(message.params);
  const version = headers['mcp-protocol-version'] ?? '';
  return named || (dated.test(version) && version >= statelessVersion) ? 'stateless' : 'handshake';
};

/** The member of `params` that a header repeats. */
const namedBy: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

/** A header as it was meant: what is no plain ASCII is sent in base64. */
const headerText = (value: string): string => {
  const match = encoded.exec(value.trim());
  return match === null ? value.trim() : Buffer.from(match[1] ?? '', 'base64').toString('utf8');
};

const assertSame = (name: string, value: string | undefined, expected: string): void => {
  if (value === undefined) throw new RpcError(mcpCodes.headerMismatch, `The header ${name} is missing.`);
  if (headerText(value) !== expected)
    throw new RpcError(mcpCodes.headerMismatch, `The header ${name} says something else than the message.`);
};

const invalidMeta = (name: string): RpcError =>
  new RpcError(rpcCodes.invalidParams, `params._meta must have a valid ${name}.`);

/** What a request of the stateless generation says of itself. Throws what is wrong with it, in the order of the protocol. */
export const checkEnvelope = ({ method, params }: RpcRequest, headers: McpHeaders, methods: ReadonlySet<string>) => {
  const meta = metaOf(params);
  const { [mcpMeta.protocolVersion]: version, [mcpMeta.clientCapabilities]: capabilities } = meta;
  if (typeof version !== 'string') throw invalidMeta(mcpMeta.protocolVersion);
  if (!isRecord(capabilities)) throw invalidMeta(mcpMeta.clientCapabilities);
  const { [mcpMeta.clientInfo]: client } = meta;
  if (client !== undefined && !isRecord(client)) throw invalidMeta(mcpMeta.clientInfo);
  assertSame('MCP-Protocol-Version', headers['mcp-protocol-version'], version);
  if (version !== statelessVersion)
    throw new RpcError(mcpCodes.unsupportedVersion, 'The protocol version is not supported.', {
      supported: [statelessVersion],
      requested: version,
    });
  assertSame('Mcp-Method', headers['mcp-method'], method);
  if (!methods.has(method)) throw new RpcError(rpcCodes.methodNotFound, 'There is no such method.');
  const { [namedBy[method] ?? '']: name } = params;
  if (namedBy[method] !== undefined && typeof name !== 'string')
    throw new RpcError(rpcCodes.invalidParams, `params.${namedBy[method]} must be a text.`);
  if (typeof name === 'string' && namedBy[method] !== undefined) assertSame('Mcp-Name', headers['mcp-name'], name);
  return { meta, capabilities: capabilities as Readonly<Record<string, Json>> };
};
