import type { StoreTable } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import type { McpServerRow } from '../../db/tables/mcp.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { wholeList } from '../../providers/mcp/lists.ts';
import { failureType, McpFailure } from '../../providers/mcp/mcp-failure.ts';
import { visibleText } from '../../providers/mcp/visible-text.ts';
import { type Connections, settingsOf } from './connections.ts';
import { type Listing, listingHash, listingOf, listingText, readListing, toolHash } from './listed-tools.ts';
import type { McpServerState } from './mcp-servers.schema.ts';
import { type Found, type McpServerStore, mcpServerStore } from './mcp-servers.store.ts';
import type { Exchange, McpTelemetry } from './mcp-telemetry.ts';

export interface DiscoveryDeps {
  readonly store: Pick<McpServerStore, 'catalog'>;
  readonly table: Pick<StoreTable<McpServerRow>, 'put'>;
  readonly connections: Pick<Connections, 'to' | 'lacking'>;
  readonly transaction: <T>(work: (stores: UnitOfWork) => Promise<T>) => Promise<T>;
  readonly telemetry: McpTelemetry;
  readonly maxTools: number;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  /** After a row was put. */
  readonly changed: () => void;
}

export interface LookOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** False: what was found is not kept, since another process may be at it. Default: it is. */
  readonly mayKeep?: () => boolean;
  /** Of whoever asked for the look. Default: the service itself. */
  readonly trace?: TraceParent | null | undefined;
}

// Names and schemas of more tools than any model could be offered; what lies beyond is not even counted.
export const mostListed = 5000;

/** What a failed look says of a server. */
const stateOf = (failure: McpFailure, oauthEnabled: boolean): McpServerState => {
  switch (failure.kind) {
    case 'unauthorized':
      return oauthEnabled ? 'AuthorizationRequired' : 'Unreachable';
    case 'missing-credential':
      return 'MissingCredential';
    case 'no-common-version':
      return 'Refused';
    default:
      return failure.outbound === 'target-not-allowed' ? 'Refused' : 'Unreachable';
  }
};

/** The server answered and the answer cost its reading: the next request costs as much again. */
const isUnreadable = ({ kind, outbound }: McpFailure): boolean =>
  kind === 'broken' || outbound === 'response-too-large';

/** Tools whose description or schema is another than at the last look. */
const drifted = (before: Listing | null, { tools }: Listing): readonly string[] => {
  const hashes = new Map(before?.tools.map((tool) => [tool.name, toolHash(tool)]));
  return tools.flatMap((tool) => {
    const hash = hashes.get(tool.name);
    return hash === undefined || hash === toolHash(tool) ? [] : [tool.name];
  });
};

/** Asks servers for their tools, and keeps what they answer. */
export const createDiscovery = (deps: DiscoveryDeps) => {
  const { store, table, connections, telemetry, maxTools, log, now } = deps;

  const list = async (row: McpServerRow, { signal, timeoutMs }: LookOptions, { trace, speaks }: Exchange) => {
    const client = connections.to(row);
    const limits = { signal, timeoutMs };
    const startedAt = performance.now();
    const { capabilities, version } = await client.session(limits);
    speaks(version);
    const left = Math.max(1, Math.ceil(timeoutMs - (performance.now() - startedAt)));
    // A server without tools is not asked for them.
    const { entries, ttlMs, ...told } = Object.hasOwn(capabilities, 'tools')
      ? await wholeList(client, 'tools', { ...limits, trace, timeoutMs: left, maxEntries: mostListed })
      : { entries: [], ttlMs: null, serverName: null };
    // Behind an address there may be another one by now than the connection was opened to.
    const session = await client.session(limits);
    const serverName = told.serverName ?? session.serverName;
    return {
      session,
      ttlMs,
      listing: readListing(entries, { ...session, serverName }, settingsOf(row).tools, maxTools),
    };
  };

  const keep = async (row: McpServerRow, found: Partial<Found> & Pick<Found, 'state'>, listing: Listing | null) => {
    const at = now();
    const values: Found = {
      protocol_version: row.protocol_version,
      server_name: row.server_name,
      tool_count: 0,
      dropped_tools: 0,
      fresh_until: null,
      catalog_hash: row.catalog_hash,
      checked_at: at,
      ...found,
    };
    const kept = await deps.transaction(async (stores) => {
      const servers = stores(mcpServerStore);
      const after = await servers.found(row, values);
      if (after !== undefined && listing !== null) await servers.listed(row.id, row.tenant_id, listingText(listing));
      return after;
    });
    if (kept === undefined) return;
    table.put(kept);
    deps.changed();
  };

  const failed = async (row: McpServerRow, failure: McpFailure, { mayKeep }: LookOptions): Promise<void> => {
    const state = stateOf(failure, settingsOf(row).oauthEnabled);
    telemetry.looked(row.name, state);
    log.warn(
      { tenantId: row.tenant_id, server: row.name, state, error: failureType(failure), err: failure },
      'An MCP server could not be asked for its tools',
    );
    // The next refresh begins a new session, as a new client would, whatever is wrong with this one.
    connections.to(row).renew();
    if (mayKeep?.() !== false) await keep(row, { state }, null);
  };

  /** What the server lists, or why it does not, which is kept; null: the look was stopped. */
  const asked = async (
    row: McpServerRow,
    options: LookOptions,
  ): Promise<Awaited<ReturnType<typeof list>> | McpFailure | null> => {
    const asker = telemetry.spansBelow(options.trace ?? null);
    const exchange = telemetry.exchange({ name: row.name, endpoint: settingsOf(row).endpoint }, 'tools/list', asker);
    let errorType: string | null = null;
    try {
      return await list(row, options, exchange);
    } catch (error) {
      if (!(error instanceof McpFailure)) throw error;
      errorType = failureType(error);
      // Who stops the look has learnt nothing of the server.
      if (options.signal?.aborted === true) return null;
      await failed(row, error, options);
      return error;
    } finally {
      exchange.end(errorType);
    }
  };

  const withoutCredential = async (
    row: McpServerRow,
    state: McpServerState,
    { mayKeep }: LookOptions,
  ): Promise<void> => {
    telemetry.looked(row.name, state);
    if (row.state !== state && mayKeep?.() !== false) await keep(row, { state }, null);
  };
  const tellDrift = async (row: McpServerRow, listing: Listing): Promise<void> => {
    const tools = drifted(listingOf((await store.catalog(row.id))?.listed ?? null), listing);
    if (tools.length === 0) return;
    telemetry.drifted(row.name, tools.length);
    log.warn(
      { tenantId: row.tenant_id, server: row.name, tools },
      'Tools of an MCP server have another description or schema than before',
    );
  };

  return {
    /** One server now. Never rejects for what the server does. True: its response cannot be read. */
    async look(row: McpServerRow, options: LookOptions): Promise<boolean> {
      const lacking = connections.lacking(row);
      if (lacking !== null) {
        await withoutCredential(row, lacking, options);
        return false;
      }
      const looked = await asked(row, options);
      if (looked === null) return false;
      if (looked instanceof McpFailure) return isUnreadable(looked);
      const { session, listing, ttlMs } = looked;
      telemetry.looked(row.name, 'Connected');
      const hash = listingHash(listing);
      if (row.catalog_hash !== null && row.catalog_hash !== hash) await tellDrift(row, listing);
      if (options.mayKeep?.() === false) return false;
      await keep(
        row,
        {
          state: 'Connected',
          protocol_version: session.version,
          // As it may be stored: a database takes no text with every character.
          server_name: listing.serverName === null ? null : visibleText(listing.serverName),
          tool_count: listing.tools.length,
          dropped_tools: listing.dropped,
          fresh_until: ttlMs === null ? null : now() + ttlMs,
          catalog_hash: hash,
        },
        listing,
      );
      return false;
    },
  };
};

export type Discovery = ReturnType<typeof createDiscovery>;

/** Does the work for each, a few side by side. */
export const sideBySide = async <T>(
  all: readonly T[],
  most: number,
  work: (one: T) => Promise<unknown>,
): Promise<void> => {
  const waiting = [...all];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.min(most, all.length) }, worker));
};
