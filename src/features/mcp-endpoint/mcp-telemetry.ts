import type { Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import { parseTraceparent, type TraceParent } from '../../core/telemetry/trace-context.ts';

/** What is known of a call before it is carried out. */
interface ToldCall {
  /** Only a name that the protocol has. */
  readonly method: string;
  readonly version: string;
  /** Only one that is offered. */
  readonly tool: string | null;
}

/** In a message, the span that it belongs to. */
type Named = Readonly<Record<string, unknown>>;

/** What is traced and counted of calls of the endpoint. */
export const createMcpTelemetry = (telemetry: Telemetry) => {
  const { metrics } = telemetry;
  const durations = metrics.histogram('acp.mcp.server.duration', 'Calls of the MCP endpoint.', 's', [
    'mcp.method.name',
    'error.type',
  ]);
  const tasks = metrics.upDown('acp.mcp.server.tasks', 'Tasks of the MCP endpoint, by status.', '{task}', [
    'acp.mcp.task.status',
  ]);
  return {
    /** The caller names the span that the call belongs to in its message, before it does in its headers. */
    begin({ method, version, tool }: ToldCall, meta: Named, trace: TraceParent | null): Span | null {
      return telemetry.begin(
        tool === null ? method : `${method} ${tool}`,
        'Server',
        parseTraceparent(meta['traceparent'], meta['tracestate']) ?? trace,
        {
          'mcp.method.name': method,
          'mcp.protocol.version': version,
          ...(tool === null ? {} : { 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': tool }),
        },
      );
    },
    end(span: Span | null, method: string, startedAt: number, errorType: string | null): void {
      durations.record((performance.now() - startedAt) / 1000, [method, errorType]);
      telemetry.finish(span, errorType);
    },
    taskBegan: (): void => tasks.add(1, ['working']),
    taskEnded: (): void => tasks.add(-1, ['working']),
  };
};

export type McpTelemetry = ReturnType<typeof createMcpTelemetry>;
