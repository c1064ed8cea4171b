import { type Config, mayNameSecret, resolveSecrets, type SecretNameRule } from '../../core/config/index.ts';
import { version } from '../../core/version.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { createMcpClient, type McpClient } from '../../providers/mcp/mcp-client.ts';
import { McpFailure } from '../../providers/mcp/mcp-failure.ts';
import type { ServerSettings } from './mcp-servers.rules.ts';

export interface ConnectionDeps {
  readonly config: Config;
  readonly names: SecretNameRule;
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly connectTimeoutMs: number;
}

export type ServerRecord = Pick<McpServerRow, 'tenant_id' | 'name' | 'id' | 'settings' | 'updated_at'>;

// An answer that a model could never read. A page of a list is as large as servers send it.
const maxAnswerBytes = 16 * 1024 * 1024;

export const settingsOf = ({ settings }: Pick<McpServerRow, 'settings'>): ServerSettings =>
  JSON.parse(settings) as ServerSettings;

/** The connections of this process, one for each server as it is saved. */
export const createConnections = ({ config, names, http, connectTimeoutMs }: ConnectionDeps) => {
  const clients = new Map<string, { readonly savedAt: number; readonly client: McpClient }>();

  /** Null: the key may not be named, or has no value now. */
  const secret = (tenantId: string, key: string): string | null =>
    mayNameSecret(names, tenantId, key) ? (resolveSecrets(config, key)[0] ?? null) : null;

  const connectTo = (row: ServerRecord): McpClient => {
    const settings = settingsOf(row);
    const { authorizationConfigurationKey: key } = settings;
    return createMcpClient(
      {
        ...settings,
        async authorization() {
          if (settings.oauthEnabled) throw new McpFailure('unauthorized');
          if (key === null) return null;
          const value = secret(row.tenant_id, key);
          if (value === null) throw new McpFailure('missing-credential');
          return value;
        },
      },
      { http, clientInfo: { name: 'acp', version }, connectTimeoutMs, maxAnswerBytes },
    );
  };

  const drop = (id: string): void => {
    const kept = clients.get(id);
    if (kept === undefined) return;
    clients.delete(id);
    void kept.client.close();
  };

  return {
    to(row: ServerRecord): McpClient {
      const kept = clients.get(row.id);
      if (kept?.savedAt === row.updated_at) return kept.client;
      drop(row.id);
      const client = connectTo(row);
      clients.set(row.id, { savedAt: row.updated_at, client });
      return client;
    },
    /** Whether its credential has no value now. */
    lacksCredential(row: Pick<McpServerRow, 'tenant_id' | 'settings'>): boolean {
      const { authorizationConfigurationKey: key } = settingsOf(row);
      return key !== null && secret(row.tenant_id, key) === null;
    },
    drop,
    async close(): Promise<void> {
      const all = [...clients.values()];
      clients.clear();
      await Promise.all(all.map(({ client }) => client.close()));
    },
  };
};

export type Connections = ReturnType<typeof createConnections>;
