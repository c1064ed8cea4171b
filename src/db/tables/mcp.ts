import { tableOf } from './table-of.ts';

/** A remote server of the Model Context Protocol. */
export interface McpServerRow {
  tenant_id: string;
  name: string;
  id: string;
  /** JSON object: what was saved. */
  settings: string;
  enabled: number;
  /** What the last look at it came to. */
  state: string;
  protocol_version: string | null;
  server_name: string | null;
  tool_count: number;
  dropped_tools: number;
  checked_at: number | null;
  /** Until then its list counts as it is; null: the next look asks for it. */
  fresh_until: number | null;
  /** Of the listed tools; null: they were never listed. */
  catalog_hash: string | null;
  /** Of the approved ones; null: none were. */
  pinned_hash: string | null;
  created_at: number;
  updated_at: number;
}

/** The tools of a server, as it has listed them and as they were approved. */
export interface McpCatalogRow {
  server_id: string;
  tenant_id: string;
  /** JSON; null: never. */
  listed: string | null;
  pinned: string | null;
  pinned_by: string | null;
  pinned_at: number | null;
}

export const mcpTables = {
  mcp_servers: tableOf<McpServerRow>(),
  mcp_catalogs: tableOf<McpCatalogRow>(),
};
