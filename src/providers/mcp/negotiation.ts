import { rpcCodes } from '../../contract/json-rpc.ts';
import { handshakeVersions, mcpCodes, newestHandshakeVersion, statelessVersion } from '../../contract/mcp.ts';
import { isRecord } from '../../contract/record.ts';
import { McpFailure } from './mcp-failure.ts';
import type { McpGeneration } from './wire/protocol.ts';

/** Which generation a server is spoken to in, and the version that is asked for. */
export interface ChosenVersion {
  readonly generation: McpGeneration;
  readonly version: string;
}

const stateless: ChosenVersion = { generation: 'Stateless', version: statelessVersion };
export const handshake: ChosenVersion = { generation: 'Handshake', version: newestHandshakeVersion };

/** The newest version of a list that is spoken here. Throws McpFailure for a list without one. */
const commonVersion = (supported: readonly unknown[]): ChosenVersion => {
  if (supported.includes(statelessVersion)) return stateless;
  const version = handshakeVersions.find((known) => supported.includes(known));
  if (version === undefined) throw new McpFailure('no-common-version');
  return { generation: 'Handshake', version };
};

const modern: ReadonlySet<number | null> = new Set([
  mcpCodes.headerMismatch,
  mcpCodes.missingClientCapability,
  mcpCodes.unsupportedVersion,
]);
const unknownToOld: ReadonlySet<number | null> = new Set([400, 404, 405]);
// What servers of the handshake generation say of a method that they do not know, or before the handshake, each after its library;
// those that pass on what another server says have numbers of their own. Every server of the other generation answers.
const unknownMethod: ReadonlySet<number | null> = new Set([
  rpcCodes.methodNotFound,
  rpcCodes.invalidParams,
  rpcCodes.invalidRequest,
  -32_000,
  -32_001,
]);

/**
 * What the answer to `server/discover` says. One that does not even mention versions is that of an older server, which answers
 * every method that it does not know. Throws McpFailure for one that says nothing.
 */
export const versionOfDiscovery = (result: Readonly<Record<string, unknown>>): ChosenVersion => {
  const supported = result['supportedVersions'];
  if (supported === undefined) return handshake;
  if (!Array.isArray(supported)) throw new McpFailure('broken');
  return commonVersion(supported);
};

/** What a failed `server/discover` says of the server; null: nothing, and the failure stands. Throws McpFailure for a server without a common version. */
export const versionOfFailure = ({ kind, code, status, data }: McpFailure): ChosenVersion | null => {
  if (kind === 'rpc' && code === mcpCodes.unsupportedVersion) {
    const supported = isRecord(data) ? data['supported'] : undefined;
    return Array.isArray(supported) ? commonVersion(supported) : null;
  }
  if (kind === 'rpc' && modern.has(code)) return null;
  if (kind === 'rpc' && (status === null || status === 200)) return unknownMethod.has(code) ? handshake : null;
  if (kind === 'rpc' && code === rpcCodes.methodNotFound) return handshake;
  return (kind === 'rpc' || kind === 'http') && unknownToOld.has(status) ? handshake : null;
};
