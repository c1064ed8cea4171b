import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { Handlers } from '../../core/context.ts';
import type { StoreTable } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { AuditLog } from '../audit/index.ts';
import { listingHash, listingOf } from './listed-tools.ts';
import type { mcpServerOperations } from './mcp-servers.operations.ts';
import { type McpServerStore, mcpServerStore } from './mcp-servers.store.ts';
import { noServer, type ServerView } from './mcp-servers.view.ts';
import { type Pin, pinChanges } from './pins.ts';

export interface PinServiceDeps {
  readonly store: McpServerStore;
  readonly table: Pick<StoreTable<McpServerRow>, 'put'>;
  readonly view: ServerView;
  readonly audit: Pick<AuditLog, 'change'>;
  readonly now: () => number;
  /** After a row was put. */
  readonly changed: () => void;
}

const pinIn = (text: string | null): Pin | null => (text === null ? null : (JSON.parse(text) as Pin));

/** What people have approved of servers. */
export const pinService = (
  deps: PinServiceDeps,
): Pick<Handlers<typeof mcpServerOperations>, 'pin' | 'approve' | 'withdraw'> => {
  const { store, view } = deps;
  return {
    async pin({ tenantId }, { params: { name } }) {
      const row = await store.find(tenantId, name);
      if (row === undefined) throw noServer(name);
      const kept = await store.catalog(row.id);
      const listing = row.catalog_hash === null ? null : listingOf(kept?.listed ?? null);
      const pin = pinIn(kept?.pinned ?? null);
      return ok({
        pinned: pin !== null,
        pinnedAt: kept?.pinned_at == null ? null : isoTime(kept.pinned_at),
        pinnedBy: kept?.pinned_by ?? null,
        hash: listing === null ? null : listingHash(listing),
        pinnedHash: pin === null ? null : listingHash(pin),
        changes: listing === null ? [] : [...pinChanges(pin ?? { serverName: listing.serverName, tools: [] }, listing)],
      });
    },

    async approve(context, { params: { name }, body }) {
      const { tenantId, principal } = context;
      const row = await deps.audit.change(context, async (stores, tell) => {
        const servers = stores(mcpServerStore);
        const before = await servers.find(tenantId, name);
        if (before === undefined) throw noServer(name);
        const kept = await servers.catalog(before.id);
        const listing = before.catalog_hash === null ? null : listingOf(kept?.listed ?? null);
        if (listing === null)
          throw new AcpError('mcp-catalog-changed', `The MCP server "${name}" was not asked for its tools yet.`);
        const hash = listingHash(listing);
        if (body?.hash != null && body.hash !== hash)
          throw new AcpError('mcp-catalog-changed', `The MCP server "${name}" lists something else by now.`);
        const pin: Pin = { serverName: listing.serverName, tools: listing.tools };
        await servers.pinned({
          server_id: before.id,
          tenant_id: tenantId,
          listed: kept?.listed ?? null,
          pinned: JSON.stringify(pin),
          pinned_by: principal.actor,
          pinned_at: deps.now(),
        });
        const after = await servers.pinnedAs(before, hash);
        if (after === undefined) throw noServer(name);
        const old = pinIn(kept?.pinned ?? null);
        const changes = pinChanges(old ?? { serverName: listing.serverName, tools: [] }, listing);
        tell({
          id: name,
          before: { hash: before.pinned_hash },
          after: { hash, changes: changes.map(({ tool, change, from }) => ({ tool, change, from })) },
        });
        return after;
      });
      deps.table.put(row);
      deps.changed();
      return ok(view.definition(row));
    },

    async withdraw(context, { params: { name } }) {
      const { tenantId } = context;
      const row = await deps.audit.change(context, async (stores, tell) => {
        const servers = stores(mcpServerStore);
        const before = await servers.find(tenantId, name);
        if (before === undefined) throw noServer(name);
        const { id: serverId, pinned_hash: hash } = before;
        if (hash === null) throw new AcpError('not-found', `Nothing is approved of the MCP server "${name}".`);
        await servers.pinned({
          ...{ server_id: serverId, tenant_id: tenantId, listed: null },
          ...{ pinned: null, pinned_by: null, pinned_at: null },
        });
        const after = await servers.pinnedAs(before, null);
        if (after === undefined) throw noServer(name);
        tell({ id: name, before: { hash }, after: null });
        return after;
      });
      deps.table.put(row);
      deps.changed();
      return noContent();
    },
  };
};
