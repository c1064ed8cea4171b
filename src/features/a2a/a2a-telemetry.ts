import type { Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';
import type { ProtocolVersion } from './a2a.schema.ts';

/** A request while it is answered. Ids of tasks, contexts and messages are not told. */
export interface TracedCall {
  readonly span: Span | null;
  readonly since: number;
}

/** Stands for a method that there is none of: what a caller has written is no dimension. */
const otherMethod = '_OTHER';

/** What is traced and counted of calls of other agents. */
export const createA2ATelemetry = (telemetry: Telemetry) => {
  const { metrics } = telemetry;
  const dimensions = ['rpc.method', 'acp.a2a.version', 'error.type'];
  const requests = metrics.counter('acp.a2a.requests', 'Requests of other agents.', '{request}', dimensions);
  const duration = metrics.histogram(
    'acp.a2a.duration',
    'Time until a request of another agent was answered, or its stream began.',
    's',
    dimensions,
  );
  const streams = metrics.upDown('acp.a2a.streams', 'Streams of tasks that are open.', '{stream}', []);
  return {
    /** Of a request whose method is not known: it is counted, and has no span of its own. */
    untraced: (): TracedCall => ({ span: null, since: performance.now() }),
    begin(parent: TraceParent | null, method: string, agentName: string): TracedCall {
      const span = telemetry.begin(`a2a ${method}`, 'Server', parent, {
        'rpc.system': 'jsonrpc',
        'rpc.method': method,
        'gen_ai.agent.name': agentName,
      });
      return { span, since: performance.now() };
    },
    end({ span, since }: TracedCall, method: string | null, version: ProtocolVersion, errorType: string | null): void {
      const labels = [method ?? otherMethod, version, errorType];
      requests.add(1, labels);
      duration.record((performance.now() - since) / 1000, labels);
      span?.set({ 'acp.a2a.version': version });
      telemetry.finish(span, errorType);
    },
    streams: (by: 1 | -1): void => streams.add(by, []),
  };
};

export type A2ATelemetry = ReturnType<typeof createA2ATelemetry>;
