import type { Config } from '../../core/config/index.ts';
import { type StoreTable, tenantKey } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { ProgramSettings } from '../../providers/mcp/stdio/program.ts';
import { settingsOf } from './connections.ts';
import { isProgram, programSettings } from './mcp-servers.rules.ts';
import type { McpServerStore } from './mcp-servers.store.ts';

export interface HostProgramDeps {
  readonly configured: Config['Host']['McpStdio'];
  readonly defaultTenantId: string;
  readonly store: Pick<McpServerStore, 'save' | 'remove'>;
  readonly table: Pick<StoreTable<McpServerRow>, 'rows' | 'put' | 'drop'>;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
  readonly newId: () => string;
  /** After a row was put or dropped. */
  readonly changed: () => void;
}

/** The programs of the configuration as servers: each has a record, so that everything that holds for servers holds for them. */
export const createHostPrograms = (deps: HostProgramDeps) => {
  const { store, table, log, now } = deps;
  const programs = new Map(
    Object.entries(deps.configured).map(([name, program]) => [
      tenantKey(program.Tenant ?? deps.defaultTenantId, name),
      { name, tenantId: program.Tenant ?? deps.defaultTenantId, program },
    ]),
  );

  const saved = (tenantId: string, name: string, before: McpServerRow | undefined): McpServerRow | null => {
    const { Protocol, RequiresApproval, Effects, Pinning } = programs.get(tenantKey(tenantId, name))?.program ?? {};
    const settings = JSON.stringify(
      programSettings(name, {
        protocol: Protocol ?? 'Auto',
        requiresApproval: RequiresApproval ?? true,
        effects: Effects ?? {},
        pinning: Pinning ?? 'Warn',
      }),
    );
    if (before?.settings === settings && before.enabled === 1) return null;
    const at = now();
    return {
      ...{ tenant_id: tenantId, name, settings, enabled: 1, id: before?.id ?? deps.newId() },
      ...{ state: 'Unknown', protocol_version: null, server_name: null, tool_count: 0, dropped_tools: 0 },
      ...{ checked_at: null, fresh_until: null, catalog_hash: null, pinned_hash: before?.pinned_hash ?? null },
      created_at: before?.created_at ?? at,
      updated_at: Math.max(at, (before?.updated_at ?? 0) + 1),
    };
  };

  return {
    has: (tenantId: string, name: string): boolean => programs.has(tenantKey(tenantId, name)),
    /** Null: the host has no such program, or none any more. */
    get(tenantId: string, name: string): ProgramSettings | null {
      const found = programs.get(tenantKey(tenantId, name));
      if (found === undefined) return null;
      const { Command, Environment, WorkingDirectory } = found.program;
      return { name, command: Command, environment: Environment, workingDirectory: WorkingDirectory };
    },
    /** Brings the records up to date with the configuration of this process. */
    async keep(): Promise<void> {
      const rows = new Map([...table.rows.values()].map((row) => [tenantKey(row.tenant_id, row.name), row]));
      for (const [key, row] of rows)
        if (isProgram(settingsOf(row)) && !programs.has(key)) {
          await store.remove(row);
          table.drop(key);
        }
      for (const [key, { tenantId, name }] of programs) {
        const before = rows.get(key);
        if (before !== undefined && !isProgram(settingsOf(before))) {
          log.error(
            { tenantId, server: name },
            'A program of Host:McpStdio is not started, because a server of its name was saved over the API',
          );
          continue;
        }
        const row = saved(tenantId, name, before);
        if (row === null) continue;
        await store.save(row);
        table.put(row);
      }
      deps.changed();
    },
  };
};

export type HostPrograms = ReturnType<typeof createHostPrograms>;
