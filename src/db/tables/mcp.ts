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

/** What a person has granted at a server. */
interface McpGrantRow {
  tenant_id: string;
  server_id: string;
  /** What of the server's record it was given for. */
  binding: string;
  version: number;
  /** JSON: tokens, and who this service is at their issuer. */
  value: string;
  /** Who is renewing it, and until when nobody else may; null: nobody is. */
  claim_id: string | null;
  claimed_until: number | null;
  updated_at: number;
}

/** What waits for a person to come back from an authorization server. */
interface McpConsentRow {
  state_hash: string;
  tenant_id: string;
  /** JSON. */
  value: string;
  expires_at: number;
}

export const mcpTables = {
  mcp_servers: tableOf<McpServerRow>(),
  mcp_catalogs: tableOf<McpCatalogRow>(),
  mcp_grants: tableOf<McpGrantRow>(),
  mcp_consents: tableOf<McpConsentRow>(),
};
