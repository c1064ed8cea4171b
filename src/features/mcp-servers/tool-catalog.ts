import type { StoreTable } from '../../core/instance-state.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import { isServiceToolName, type RegisteredTool } from '../../engine/tools/index.ts';
import { settingsOf } from './connections.ts';
import { catalogName, type Listing, listingOf } from './listed-tools.ts';
import type { McpServerStore } from './mcp-servers.store.ts';
import { type Admitted, admittedTools, type Pin } from './pins.ts';

export interface CatalogDeps {
  readonly table: Pick<StoreTable<McpServerRow>, 'rows' | 'onRead'>;
  readonly store: Pick<McpServerStore, 'catalog'>;
  readonly enabled: boolean;
  /** A tool of code, which wins over every other of its name. */
  readonly codeTool: (name: string) => boolean;
  readonly register: (server: McpServerRow, name: string, admitted: Admitted) => RegisteredTool;
}

/** Made when an agent has it first: of two thousand tools of fifty servers few are ever named. */
type LazyTool = () => RegisteredTool;

const once = (make: LazyTool): LazyTool => {
  let tool: RegisteredTool | null = null;
  return () => {
    tool ??= make();
    return tool;
  };
};

interface ServerTools {
  /** Of the row that they were made of. */
  readonly mark: string;
  readonly repeated: Listing['repeated'];
  readonly tools: readonly { readonly name: string; readonly isApproved: boolean; readonly tool: LazyTool }[];
}

/** The remote tools of one tenant. */
interface TenantTools {
  readonly mark: string;
  readonly byName: ReadonlyMap<string, LazyTool>;
  /** By server: names that another tool has. */
  readonly clashes: ReadonlyMap<string, readonly string[]>;
  readonly counts: ReadonlyMap<string, number>;
}

const nothing: TenantTools = { mark: '', byName: new Map(), clashes: new Map(), counts: new Map() };

const markOf = ({ id, catalog_hash, pinned_hash, updated_at }: McpServerRow): string =>
  `${id} ${catalog_hash} ${pinned_hash} ${updated_at}`;

const isOffered = ({ enabled, state, catalog_hash: listed }: McpServerRow): boolean =>
  enabled === 1 && state === 'Connected' && listed !== null;

/**
 * The remote tools that agents can have, by tenant, in memory. A tool stays the same object while its server lists it as
 * before, so that an agent which was compiled with it needs no second look.
 */
export const createToolCatalog = ({ table, store, enabled, codeTool, register }: CatalogDeps) => {
  const servers = new Map<string, ServerTools>();
  const tenants = new Map<string, TenantTools>();
  const loading = new Map<string, Promise<void>>();
  let rowsOfTenant: ReadonlyMap<string, readonly McpServerRow[]> | null = null;
  const changed = (): void => {
    rowsOfTenant = null;
  };
  table.onRead(changed);

  const rowsOf = (tenantId: string): readonly McpServerRow[] => {
    // Asked first: it throws for rows that are too old.
    const { rows } = table;
    if (rowsOfTenant === null) {
      const byTenant = Map.groupBy(rows.values(), (row) => row.tenant_id);
      for (const list of byTenant.values()) list.sort((a, b) => (a.name < b.name ? -1 : 1));
      rowsOfTenant = byTenant;
    }
    return rowsOfTenant.get(tenantId) ?? [];
  };

  const make = (row: McpServerRow, listing: Listing, pin: Pin | null): ServerTools => ({
    mark: markOf(row),
    repeated: listing.repeated,
    tools: admittedTools(listing, pin, settingsOf(row).pinning).map((admitted) => {
      const name = catalogName(row.name, admitted.tool.name);
      // As text, which takes a fifth of the room that its schema takes as objects.
      const text = JSON.stringify(admitted);
      const tool = once(() => register(row, name, JSON.parse(text) as Admitted));
      return { name, isApproved: admitted.isApproved, tool };
    }),
  });

  const load = async (row: McpServerRow): Promise<void> => {
    const kept = await store.catalog(row.id);
    const listing = listingOf(kept?.listed ?? null);
    // Gone meanwhile, and so is the record.
    if (listing === null) return;
    const pinned = kept?.pinned ?? null;
    servers.set(row.id, make(row, listing, pinned === null ? null : (JSON.parse(pinned) as Pin)));
  };
  const loaded = (row: McpServerRow): Promise<void> => {
    const mark = markOf(row);
    const under = loading.get(mark);
    if (under !== undefined) return under;
    const work = load(row).finally(() => loading.delete(mark));
    loading.set(mark, work);
    return work;
  };
  const isLoaded = (row: McpServerRow): boolean => servers.get(row.id)?.mark === markOf(row);
  const missing = (tenantId: string): readonly McpServerRow[] =>
    rowsOf(tenantId).filter((row) => isOffered(row) && !isLoaded(row));

  /** By name: the server whose tool has it. One that a person has approved keeps its name; else the first server has it. */
  const holdersOf = (rows: readonly McpServerRow[]): ReadonlyMap<string, string> => {
    const listed = rows.flatMap(({ id }) => (servers.get(id)?.tools ?? []).map((entry) => ({ ...entry, id })));
    const [approved, others] = [true, false].map((wanted) => listed.filter(({ isApproved }) => isApproved === wanted));
    // Of entries with one name the last one counts.
    return new Map([...(approved ?? []), ...(others ?? [])].reverse().map(({ name, id }) => [name, id]));
  };

  const build = (mark: string, rows: readonly McpServerRow[]): TenantTools => {
    const byName = new Map<string, LazyTool>();
    const clashes = new Map<string, readonly string[]>();
    const counts = new Map<string, number>();
    const holders = holdersOf(rows);
    for (const row of rows) {
      const { tools, repeated } = servers.get(row.id) ?? { tools: [], repeated: [] };
      const lost = repeated.map((name) => catalogName(row.name, name));
      let count = 0;
      for (const { name, tool } of tools)
        if (codeTool(name) || isServiceToolName(name) || holders.get(name) !== row.id || byName.has(name))
          lost.push(name);
        else {
          byName.set(name, tool);
          count += 1;
        }
      clashes.set(row.id, lost);
      counts.set(row.id, count);
    }
    return { mark, byName: new Map([...byName].sort(([a], [b]) => (a < b ? -1 : 1))), clashes, counts };
  };

  const of = (tenantId: string): TenantTools => {
    if (!enabled) return nothing;
    const rows = rowsOf(tenantId).filter((row) => isOffered(row) && isLoaded(row));
    if (rows.length === 0) return nothing;
    const mark = rows.map(markOf).join('\n');
    const known = tenants.get(tenantId);
    if (known?.mark === mark) return known;
    const built = build(mark, rows);
    tenants.set(tenantId, built);
    return built;
  };

  return {
    enabled,
    /** Call after a row was put or dropped. */
    changed,
    /** Tools that agents can have, by server, of all tenants together. */
    counts(): ReadonlyMap<string, number> {
      const counts = new Map<string, number>();
      for (const row of table.rows.values())
        counts.set(row.name, (counts.get(row.name) ?? 0) + (of(row.tenant_id).counts.get(row.id) ?? 0));
      return counts;
    },
    rows: rowsOf,
    row: (tenantId: string, name: string): McpServerRow | undefined =>
      rowsOf(tenantId).find((row) => row.name === name),
    /** Null: what the tenant has can be asked now. Else it resolves once it can. */
    ready(tenantId: string): Promise<void> | null {
      if (!enabled) return null;
      const rows = missing(tenantId);
      if (rows.length === 0) return null;
      return Promise.all(rows.map(loaded)).then(() => undefined);
    },
    of,
    get: (tenantId: string, name: string): RegisteredTool | undefined => of(tenantId).byName.get(name)?.(),
    /** By name. */
    list: (tenantId: string): readonly RegisteredTool[] => [...of(tenantId).byName.values()].map((tool) => tool()),
    /** The tool of a server that its last list had, whether or not it is offered now. */
    lastListed: async (row: McpServerRow): Promise<Listing | null> =>
      row.catalog_hash === null ? null : listingOf((await store.catalog(row.id))?.listed ?? null),
    forget(id: string): void {
      servers.delete(id);
    },
  };
};

export type ToolCatalog = ReturnType<typeof createToolCatalog>;
