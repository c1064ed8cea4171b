import { type Config, mayNameSecret, resolveSecrets, type SecretNameRule } from '../../core/config/index.ts';
import { version } from '../../core/version.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { OutboundError } from '../../providers/http/outbound-error.ts';
import { createMcpClient } from '../../providers/mcp/mcp-client.ts';
import { McpFailure } from '../../providers/mcp/mcp-failure.ts';
import type { McpClient, McpTarget } from '../../providers/mcp/mcp-target.ts';
import { createProgram, type ProgramDeps, type ProgramSettings } from '../../providers/mcp/stdio/program.ts';
import { sha256 } from './listed-tools.ts';
import { isProgram, type ServerSettings } from './mcp-servers.rules.ts';

/** What OAuth gives a connection. */
export interface BearerTokens {
  /** The whole Authorization header. Throws McpFailure. */
  header(row: ServerRecord): Promise<string>;
  /** True: the server has refused this header, and there is another one by now. Throws McpFailure. */
  renewed(row: ServerRecord, refused: string): Promise<boolean>;
  /** The server has refused a request for what its token is for, and says why. */
  forbidden(row: ServerRecord, challenge: string): void;
  /** True: it is certain, without a look into the store, that there is no token. */
  lacks(row: Omit<ServerRecord, 'updated_at'>): boolean;
}

export interface ConnectionDeps {
  /** The value of a configuration key of a tenant; null: the key may not be named, or has none now. */
  readonly secret: SecretOf;
  readonly tokens: BearerTokens;
  readonly http: Pick<OutboundHttp, 'open' | 'request'>;
  readonly connectTimeoutMs: number;
  /** Programs of the host; null: it has none of this name. */
  readonly programs: { get(tenantId: string, name: string): ProgramSettings | null };
  readonly log: ProgramDeps['log'];
  /** PATH of programs. */
  readonly path: string | undefined;
}

export type ServerRecord = Pick<McpServerRow, 'tenant_id' | 'name' | 'id' | 'settings' | 'updated_at'>;

export type SecretOf = (tenantId: string, key: string) => string | null;

export const secretReader =
  (config: Config, names: SecretNameRule): SecretOf =>
  (tenantId, key) =>
    mayNameSecret(names, tenantId, key) ? (resolveSecrets(config, key)[0] ?? null) : null;

// An answer that a model could never read. A page of a list is as large as servers send it.
const maxAnswerBytes = 16 * 1024 * 1024;

export const settingsOf = ({ settings }: Pick<McpServerRow, 'settings'>): ServerSettings =>
  JSON.parse(settings) as ServerSettings;

/** The connections of this process, one for each server as it is saved. */
export const createConnections = (deps: ConnectionDeps) => {
  const { secret, tokens, http, connectTimeoutMs, programs, log, path } = deps;
  const clients = new Map<string, { readonly savedAt: number; readonly client: McpClient }>();

  const clientOf = (target: McpTarget, timeoutMs: number): McpClient =>
    createMcpClient(target, {
      http,
      clientInfo: { name: 'acp', version },
      connectTimeoutMs: timeoutMs,
      maxAnswerBytes,
    });
  /** A process of its own, which ends with the client. */
  const programOf = ({ tenant_id: tenantId, name }: ServerRecord): Pick<McpTarget, 'channel' | 'stop'> => {
    const settings = programs.get(tenantId, name);
    if (settings !== null) return createProgram(settings, { log, path, maxLineBytes: maxAnswerBytes });
    return {
      async channel() {
        throw new McpFailure('no-answer', { cause: new OutboundError('unreachable') });
      },
    };
  };

  /** The whole Authorization header; null: none is sent. Throws McpFailure. */
  const authorizationOf = async (row: ServerRecord): Promise<string | null> => {
    const { authorizationConfigurationKey: key, oauthEnabled } = settingsOf(row);
    if (oauthEnabled) return tokens.header(row);
    if (key === null) return null;
    const value = secret(row.tenant_id, key);
    if (value === null) throw new McpFailure('missing-credential');
    return value;
  };
  const connectTo = (row: ServerRecord, timeoutMs = connectTimeoutMs): McpClient => {
    const settings = settingsOf(row);
    if (isProgram(settings)) {
      const program = programOf(row);
      return clientOf({ ...settings, ...program, authorization: async () => null }, timeoutMs);
    }
    const authorization = (): Promise<string | null> => authorizationOf(row);
    if (settings.oauthEnabled)
      return clientOf(
        {
          ...settings,
          authorization,
          renewed: (refused) => tokens.renewed(row, refused),
          forbidden: (challenge) => tokens.forbidden(row, challenge),
        },
        timeoutMs,
      );
    return clientOf({ ...settings, authorization }, timeoutMs);
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
    /** One beside those that are kept, for whoever closes it. */
    apart: (row: ServerRecord, timeoutMs: number): McpClient => connectTo(row, timeoutMs),
    /** What stands for the credential that a server is sent now. Throws McpFailure. */
    credential: async (row: ServerRecord): Promise<string> => sha256((await authorizationOf(row)) ?? ''),
    /** What a server without a credential is in; null: it has one, as far as is known without a look into the store. */
    lacking(row: Omit<ServerRecord, 'updated_at'>): 'MissingCredential' | 'AuthorizationRequired' | null {
      const { authorizationConfigurationKey: key, oauthEnabled } = settingsOf(row);
      if (oauthEnabled) return tokens.lacks(row) ? 'AuthorizationRequired' : null;
      return key !== null && secret(row.tenant_id, key) === null ? 'MissingCredential' : null;
    },
    /** What a server says to somebody without a credential (`WWW-Authenticate`); null: nothing. Throws McpFailure where it does not answer. */
    async challenge(row: ServerRecord, timeoutMs: number): Promise<string | null> {
      const client = clientOf({ ...settingsOf(row), authorization: async () => null }, timeoutMs);
      try {
        await client.session({ timeoutMs });
        return null;
      } catch (error) {
        if (!(error instanceof McpFailure) || error.kind === 'no-answer') throw error;
        return error.challenge;
      } finally {
        void client.close();
      }
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
