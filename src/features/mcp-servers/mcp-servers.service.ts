import { isDeepStrictEqual } from 'node:util';
import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import type { Handlers } from '../../core/context.ts';
import { type StoreTable, tenantKey } from '../../core/instance-state.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { AuditLog } from '../audit/index.ts';
import { type Connections, settingsOf } from './connections.ts';
import { type Discovery, sideBySide } from './discovery.ts';
import type { mcpServerOperations } from './mcp-servers.operations.ts';
import { askedServer, type ServerRules, type ServerSettings } from './mcp-servers.rules.ts';
import type { McpRefreshResponse } from './mcp-servers.schema.ts';
import { type McpServerStore, mcpServerStore } from './mcp-servers.store.ts';
import { noServer, type ServerView } from './mcp-servers.view.ts';
import type { ServerCheck } from './server-check.ts';
import type { ToolCatalog } from './tool-catalog.ts';

export interface McpServiceDeps {
  readonly store: McpServerStore;
  readonly table: Pick<StoreTable<McpServerRow>, 'put' | 'drop'>;
  readonly catalog: ToolCatalog;
  readonly connections: Pick<Connections, 'drop'>;
  /** Forgets what was granted at a server that is gone or is another one now. */
  readonly forgetGrant: (before: McpServerRow, after: McpServerRow | null) => Promise<void>;
  readonly discovery: Discovery;
  readonly view: ServerView;
  readonly rules: ServerRules;
  /** Whether the host starts a program of this name for the tenant. */
  readonly isOfHost: (tenantId: string, name: string) => boolean;
  readonly check: ServerCheck;
  readonly enabled: boolean;
  readonly timeoutMs: number;
  /** Called when an endpoint is refused for its address. */
  readonly targetRefused: () => void;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Names that paths of the API have. */
const taken: ReadonlySet<string> = new Set(['refresh']);
// Somebody waits for all of them.
const looksAtOnce = 8;

/** What decides whom a server is and what it lists; a change of it makes what was found worthless. */
const reached = ({ endpoint, transport, protocol, headers, tools, ...rest }: ServerSettings) => {
  const { authorizationConfigurationKey, oauthEnabled, oauthClientId, oauthScopes } = rest;
  const { oauthClientSecretConfigurationKey } = rest;
  return {
    endpoint,
    transport,
    protocol,
    headers,
    tools,
    authorizationConfigurationKey,
    oauthEnabled,
    oauthClientId,
    oauthScopes,
    oauthClientSecretConfigurationKey,
  };
};

const nothingFound = { protocol_version: null, server_name: null, catalog_hash: null } as const;
const notConnected = { state: 'Unknown', tool_count: 0, dropped_tools: 0 } as const;

/** What was found of a server that still counts once it is saved so. */
const keptOf = (before: McpServerRow | undefined, settings: ServerSettings, enabled: boolean) => {
  if (before === undefined || !isDeepStrictEqual(reached(settingsOf(before)), reached(settings)))
    return { ...nothingFound, ...notConnected };
  const { protocol_version, server_name, catalog_hash, state, tool_count, dropped_tools } = before;
  const found = { protocol_version, server_name, catalog_hash };
  return before.enabled === 1 && enabled
    ? { ...found, state, tool_count, dropped_tools }
    : { ...found, ...notConnected };
};

type ServiceHandlers = Pick<
  Handlers<typeof mcpServerOperations>,
  'list' | 'get' | 'save' | 'remove' | 'refresh' | 'check'
>;

export const assertEnabled = (enabled: boolean): void => {
  if (!enabled) throw new AcpError('mcp-disabled', 'MCP is switched off (Service:Mcp:Enabled).');
};

export const mcpServerService = (deps: McpServiceDeps): ServiceHandlers => {
  const { store, table, catalog, connections, view, audit, now } = deps;

  const asked = (tenantId: string, body: Parameters<typeof askedServer>[1]) => {
    try {
      return askedServer(tenantId, body, deps.rules);
    } catch (error) {
      if (error instanceof AcpError && error.code === 'target-not-allowed') deps.targetRefused();
      throw error;
    }
  };
  const refuseProgram = (tenantId: string, name: string): void => {
    if (deps.isOfHost(tenantId, name))
      throw invalidField('name', 'is a program that the host starts (Host:McpStdio), and can be changed there alone');
  };
  const found = async (tenantId: string, name: string): Promise<McpServerRow> => {
    const row = await store.find(tenantId, name);
    if (row === undefined) throw noServer(name);
    return row;
  };
  const rowToSave = (
    tenantId: string,
    name: string,
    settings: ServerSettings,
    enabled: boolean,
    before: McpServerRow | undefined,
  ): McpServerRow => {
    const at = now();
    const kept = keptOf(before, settings, enabled);
    return {
      ...{ tenant_id: tenantId, name, settings: JSON.stringify(settings), enabled: enabled ? 1 : 0 },
      id: before?.id ?? deps.newId(),
      ...kept,
      checked_at: before?.checked_at ?? null,
      pinned_hash: before?.pinned_hash ?? null,
      fresh_until: null,
      created_at: before?.created_at ?? at,
      // Connections and what was found go by it, so that two saves are never of one moment.
      updated_at: Math.max(at, (before?.updated_at ?? 0) + 1),
    };
  };

  return {
    list: async ({ tenantId }) => ok((await store.list(tenantId)).map(view.definition)),
    get: async ({ tenantId }, { params: { name } }) => ok(view.definition(await found(tenantId, name))),

    async save(context, { params: { name }, query, body }) {
      const { tenantId } = context;
      if (taken.has(name)) throw invalidField('name', 'is a word of the API');
      refuseProgram(tenantId, name);
      const settings = asked(tenantId, body);
      const { before, row } = await audit.save(context, query, async (stores, tell) => {
        const servers = stores(mcpServerStore);
        const before = await servers.find(tenantId, name);
        assertExpected(query, before?.updated_at);
        const saved = rowToSave(tenantId, name, settings, body.enabled ?? true, before);
        if (query.dryRun === true) return { before, row: saved };
        await servers.save(saved);
        tell({
          id: name,
          before: before === undefined ? null : view.definition(before),
          after: view.definition(saved),
        });
        return { before, row: saved };
      });
      if (query.dryRun === true) return ok(view.definition(row));
      table.put(row);
      catalog.changed();
      connections.drop(row.id);
      if (before !== undefined) await deps.forgetGrant(before, row);
      return ok(view.definition(row));
    },

    async remove(context, { params: { name } }) {
      const { tenantId } = context;
      refuseProgram(tenantId, name);
      const before = await audit.change(context, async (stores, tell) => {
        const servers = stores(mcpServerStore);
        const before = await servers.find(tenantId, name);
        if (before === undefined || !(await servers.remove(before))) throw noServer(name);
        tell({ id: name, before: view.definition(before), after: null });
        return before;
      });
      table.drop(tenantKey(tenantId, name));
      catalog.changed();
      catalog.forget(before.id);
      connections.drop(before.id);
      await deps.forgetGrant(before, null);
      return noContent();
    },

    async check({ tenantId }, { params: { name } }) {
      assertEnabled(deps.enabled);
      return ok([...(await deps.check(await found(tenantId, name)))]);
    },

    async refresh({ tenantId, trace }, { query: { name } }) {
      assertEnabled(deps.enabled);
      const before = name === undefined ? await store.list(tenantId) : [await found(tenantId, name)];
      const looked = before.filter(({ enabled }) => enabled === 1);
      await sideBySide(looked, looksAtOnce, (row) => deps.discovery.look(row, { timeoutMs: deps.timeoutMs, trace }));
      await catalog.ready(tenantId);
      const { byName, clashes } = catalog.of(tenantId);
      const asked = new Set(before.filter(({ enabled }) => name !== undefined || enabled === 1).map(({ id }) => id));
      const servers: McpRefreshResponse['servers'] = [];
      for (const row of await store.list(tenantId)) {
        if (!asked.has(row.id)) continue;
        const definition = view.definition(row);
        const { state, toolCount, droppedTools } = definition.status;
        const listing = state === 'Connected' ? await catalog.lastListed(row) : null;
        servers.push({
          name: row.name,
          state,
          toolCount,
          droppedTools,
          clashes: [...(clashes.get(row.id) ?? [])],
          refused: (listing?.refused ?? []).map(({ tool, reason }) => ({ tool, reason })),
        });
      }
      return ok({ toolCount: byName.size, servers });
    },
  };
};
