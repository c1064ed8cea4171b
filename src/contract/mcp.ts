/** What both sides of the Model Context Protocol share: versions, error numbers, names. */

/** Each request is complete in itself. */
export const statelessVersion = '2026-07-28';
/** Versions that begin with a handshake, the newest first. */
export const handshakeVersions = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const newestHandshakeVersion = handshakeVersions[0];

/** Beside the numbers of JSON-RPC. */
export const mcpCodes = {
  /** A header is missing, or says something else than the body. */
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedVersion: -32022,
} as const;

const own = <const T extends string>(name: T) => `io.modelcontextprotocol/${name}` as const;

/** Members of `_meta`. */
export const mcpMeta = {
  protocolVersion: own('protocolVersion'),
  clientInfo: own('clientInfo'),
  clientCapabilities: own('clientCapabilities'),
  serverInfo: own('serverInfo'),
  subscriptionId: own('subscriptionId'),
} as const;

/** Calls that are answered later. */
export const tasksExtension = own('tasks');
