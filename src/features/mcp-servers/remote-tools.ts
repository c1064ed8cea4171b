import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { RegisteredTool } from '../../engine/tools/index.ts';
import { type Discovery, sideBySide } from './discovery.ts';
import { catalogName } from './listed-tools.ts';
import type { ToolCatalog } from './tool-catalog.ts';

/** The remote tools of a tenant, as definitions name them. */
export interface RemoteTools {
  /** Null: what the tenant has can be asked now. Else it resolves once it can. */
  ready(tenantId: string): Promise<void> | null;
  get(tenantId: string, name: string): RegisteredTool | undefined;
  /** By name. */
  list(tenantId: string): readonly RegisteredTool[];
  /** The server that a tool is of, by its name: one that is away or switched off, too. Null: the tool is none of a server. */
  serverOf(tenantId: string, name: string): string | null;
  /** Whether there is a server of this name, reached or not. */
  hasServer(tenantId: string, name: string): boolean;
  /**
   * Asks the servers of tools that are not known and were not reached, for a definition that names them. Gives back which
   * of the tools belong to a server that did not answer, and whether it listed them when it last did.
   */
  lookFor(
    tenantId: string,
    names: readonly string[],
  ): Promise<ReadonlyMap<string, { readonly server: string; readonly wasListed: boolean }>>;
}

interface RemoteToolsDeps {
  readonly catalog: ToolCatalog;
  readonly discovery: Discovery;
  /** `Validation:McpTimeout`. */
  readonly timeoutMs: number;
}

export const createRemoteTools = ({ catalog, discovery, timeoutMs }: RemoteToolsDeps): RemoteTools => {
  /** Servers whose tools could have these names. Long names keep that of their server, too. */
  const suspects = (tenantId: string, names: readonly string[]): readonly McpServerRow[] =>
    catalog
      .rows(tenantId)
      .filter(
        ({ enabled, state, name }) =>
          enabled === 1 && state !== 'Connected' && names.some((tool) => tool.startsWith(`${name}_`)),
      );
  const wasListed = async (row: McpServerRow, name: string): Promise<boolean> =>
    (await catalog.lastListed(row))?.tools.some((tool) => catalogName(row.name, tool.name) === name) === true;

  return {
    ready: catalog.ready,
    get: catalog.get,
    list: catalog.list,
    serverOf(tenantId, name) {
      const offered = catalog.get(tenantId, name)?.descriptor.source ?? null;
      if (offered !== null) return offered;
      const possible = catalog.rows(tenantId).filter((row) => name.startsWith(`${row.name}_`));
      // Of `a` and `a_b` the second one: what it lists is called so in any case.
      return possible.reduce<string | null>(
        (longest, row) => (row.name.length > (longest?.length ?? 0) ? row.name : longest),
        null,
      );
    },
    hasServer: (tenantId, name) => catalog.row(tenantId, name) !== undefined,
    async lookFor(tenantId, names) {
      const found = new Map<string, { readonly server: string; readonly wasListed: boolean }>();
      if (!catalog.enabled) return found;
      await catalog.ready(tenantId);
      const unknown = (): readonly string[] => names.filter((name) => catalog.get(tenantId, name) === undefined);
      const asked = suspects(tenantId, unknown());
      if (asked.length === 0) return found;
      await sideBySide(asked, asked.length, (row) => discovery.look(row, { timeoutMs }));
      await catalog.ready(tenantId);
      const still = unknown();
      for (const row of suspects(tenantId, still))
        for (const name of still.filter((tool) => tool.startsWith(`${row.name}_`) && !found.has(tool)))
          found.set(name, { server: row.name, wasListed: await wasListed(row, name) });
      return found;
    },
  };
};
