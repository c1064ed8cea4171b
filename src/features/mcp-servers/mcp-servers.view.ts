import { AcpError } from '../../contract/errors.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { type Connections, settingsOf } from './connections.ts';
import { isProgram } from './mcp-servers.rules.ts';
import type { McpServerDefinition, McpServerState } from './mcp-servers.schema.ts';

/** What is answered for a name that the tenant has no server of. */
export const noServer = (name: string): AcpError => new AcpError('not-found', `There is no MCP server "${name}".`);

const pinOf = ({ pinned_hash: pinned, catalog_hash: listed }: McpServerRow): 'None' | 'Same' | 'Changed' => {
  if (pinned === null) return 'None';
  return pinned === listed ? 'Same' : 'Changed';
};

export const createServerView = ({ lacking }: Pick<Connections, 'lacking'>) => {
  const state = (row: McpServerRow): McpServerState => {
    if (row.enabled !== 1) return 'Disabled';
    // A credential that it has by now, and the server was not asked yet, leaves it unknown.
    return lacking(row) ?? (row.state === 'MissingCredential' ? 'Unknown' : (row.state as McpServerState));
  };
  return {
    state,
    definition(row: McpServerRow): McpServerDefinition {
      const shown = state(row);
      const isConnected = shown === 'Connected';
      return {
        id: row.id,
        tenantId: row.tenant_id,
        name: row.name,
        ...settingsOf(row),
        ...(isProgram(settingsOf(row)) ? { transport: 'Stdio' as const } : {}),
        enabled: row.enabled === 1,
        status: {
          state: shown,
          protocolVersion: row.protocol_version,
          serverName: row.server_name === null ? null : visibleText(row.server_name),
          toolCount: isConnected ? row.tool_count : 0,
          droppedTools: isConnected ? row.dropped_tools : 0,
          checkedAt: row.checked_at === null ? null : isoTime(row.checked_at),
          pin: pinOf(row),
        },
        createdAt: isoTime(row.created_at),
        updatedAt: isoTime(row.updated_at),
      };
    },
  };
};

export type ServerView = ReturnType<typeof createServerView>;
