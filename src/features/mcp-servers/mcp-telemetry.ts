import type { Telemetry } from '../../core/telemetry/telemetry.ts';

/** What is counted of the servers that this service calls. */
export const createMcpTelemetry = ({ metrics }: Pick<Telemetry, 'metrics'>) => {
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
    requested: (name: string, method: string, seconds: number, errorType: string | null): void =>
      duration.record(seconds, [name, method, errorType]),
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
