import type { AttributeInput } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { type TraceHeaders, type TraceParent, traceHeaders } from '../../core/telemetry/trace-context.ts';
import type { OpensSpan } from '../../engine/tools/index.ts';

/** For whom a server is asked. */
export interface Asker {
  readonly signal?: AbortSignal | undefined;
  /** Absent: nobody watches it. */
  readonly openSpan?: OpensSpan | undefined;
}

/** A request to a server, or several for one purpose, until its end is told. */
export interface Exchange {
  /** What is sent along. */
  readonly trace: Partial<TraceHeaders>;
  /** Once it is known which one the server speaks. */
  speaks(version: string): void;
  end(errorType: string | null): void;
}

/** What the request is about, beside its server. */
type About = { readonly tool: string } | { readonly uri: string } | null;

const aboutOf = (about: About): AttributeInput => {
  if (about === null) return {};
  return 'uri' in about
    ? { 'mcp.resource.uri': about.uri }
    : { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': about.tool };
};

/** A program of this machine has no address. */
const addressOf = (endpoint: string): AttributeInput => {
  const { hostname, port, protocol } = new URL(endpoint);
  if (hostname === '' || !/^https?:$/.test(protocol)) return {};
  return {
    'server.address': hostname,
    'server.port': port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port),
  };
};

/** What is traced and counted of the servers that this service calls. */
export const createMcpTelemetry = (telemetry: Pick<Telemetry, 'metrics' | 'begin' | 'finish'>) => {
  const { metrics } = telemetry;
  const server = 'acp.mcp.server';
  const duration = metrics.histogram('acp.mcp.client.duration', 'Requests to MCP servers.', 's', [
    server,
    'mcp.method.name',
    'error.type',
  ]);
  const refreshes = metrics.counter('acp.mcp.client.refresh', 'Looks at MCP servers for their tools.', '{look}', [
    server,
    'acp.mcp.state',
  ]);
  const drift = metrics.counter(
    'acp.mcp.tool.drift',
    'Tools of MCP servers whose description or schema has changed.',
    '{tool}',
    [server],
  );
  return {
    /** The span is below whatever the asker opens it. */
    exchange(
      server: { readonly name: string; readonly endpoint: string },
      method: string,
      openSpan: OpensSpan | undefined,
      about: About = null,
    ): Exchange {
      const startedAt = performance.now();
      const name = about !== null && 'tool' in about ? `${method} ${about.tool}` : method;
      const span = openSpan?.(
        name,
        { 'mcp.method.name': method, ...aboutOf(about), ...addressOf(server.endpoint) },
        'Client',
      );
      return {
        trace: span?.headers ?? {},
        speaks: (version) => span?.set({ 'mcp.protocol.version': version }),
        end(errorType) {
          span?.close(errorType);
          duration.record((performance.now() - startedAt) / 1000, [server.name, method, errorType]);
        },
      };
    },
    /** For an asker that is no run: a request of the API, or with null the service itself. */
    spansBelow:
      (parent: TraceParent | null): OpensSpan =>
      (name, attributes, kind = 'Internal') => {
        const span = telemetry.begin(name, kind, parent, attributes);
        const above = span ?? parent;
        return {
          headers: above === null ? {} : traceHeaders(above),
          set: (more) => span?.set(more),
          close: (errorType) => telemetry.finish(span, errorType),
        };
      },
    looked: (name: string, state: string): void => refreshes.add(1, [name, state]),
    drifted: (name: string, tools: number): void => drift.add(tools, [name]),
    /** Tools that agents can have, for each server, asked for when metrics are collected. */
    toolsOf(counts: () => ReadonlyMap<string, number>): void {
      metrics.gauge('acp.mcp.tools', 'Tools of MCP servers that agents can have.', '{tool}', [server], () =>
        [...counts()].map(([name, value]) => ({ value, values: [name] })),
      );
    },
  };
};

export type McpTelemetry = ReturnType<typeof createMcpTelemetry>;
