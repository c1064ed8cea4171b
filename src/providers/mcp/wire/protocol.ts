import { mcpCodes } from '../../../contract/mcp.ts';

/** The first revision: of the transport with two endpoints, and of programs. */
export const firstVersion = '2024-11-05';

/** `Stateless`: 2026-07-28. `Handshake`: the revisions before it. */
export type McpGeneration = 'Stateless' | 'Handshake';

/** What the errors of the stateless generation were called before it was final, where their `data` is the same. */
const numbersBefore: ReadonlyMap<number, { readonly now: number; readonly member: string | null }> = new Map([
  [-32001, { now: mcpCodes.headerMismatch, member: null }],
  [-32003, { now: mcpCodes.missingClientCapability, member: 'requiredCapabilities' }],
  [-32004, { now: mcpCodes.unsupportedVersion, member: 'supported' }],
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
