/** The revision in which each request is complete in itself. */
export const statelessVersion = '2026-07-28';

/** Revisions that begin with `initialize`, newest first; the first one is asked for. */
export const handshakeVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const newestHandshake = handshakeVersions[0];

/** The revision of the transport with two endpoints. */
export const twoEndpointVersion = '2024-11-05';

/** `Stateless`: 2026-07-28. `Handshake`: the revisions before it. */
export type McpGeneration = 'Stateless' | 'Handshake';

export const rpcError = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** What the errors of the stateless generation were called before it was final, where their `data` is the same. */
const numbersBefore: ReadonlyMap<number, { readonly now: number; readonly member: string | null }> = new Map([
  [-32001, { now: rpcError.headerMismatch, member: null }],
  [-32003, { now: rpcError.missingCapability, member: 'requiredCapabilities' }],
  [-32004, { now: rpcError.unsupportedVersion, member: 'supported' }],
]);

/** The final number of an error. Servers of the handshake generation use -32001 for a session that is gone. */
export const finalErrorCode = (code: number, data: unknown): number => {
  const before = numbersBefore.get(code);
  if (before === undefined || typeof data !== 'object' || data === null) return code;
  return before.member === null || before.member in data ? before.now : code;
};

/** Headers of a request, in lower case as they are sent. */
export const mcpHeader = {
  version: 'mcp-protocol-version',
  method: 'mcp-method',
  name: 'mcp-name',
  parameter: 'mcp-param-',
  session: 'mcp-session-id',
} as const;

/** Members of `params._meta` and of a result's `_meta`. */
export const metaKey = {
  version: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscription: 'io.modelcontextprotocol/subscriptionId',
} as const;

/** Name of the extension for calls that take long. */
const tasksExtension = 'io.modelcontextprotocol/tasks';
