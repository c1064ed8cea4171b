import type { Span } from '../../core/telemetry/span.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { TraceParent } from '../../core/telemetry/trace-context.ts';

const outcomes: Readonly<Record<string, string>> = {
  unauthenticated: 'unauthenticated',
  'trigger-rate-limited': 'rate_limited',
  'trigger-replayed': 'replayed',
};

/** What is traced and counted of calls of triggers. */
export const createTriggerTelemetry = (telemetry: Telemetry) => {
  const calls = telemetry.metrics.counter('acp.trigger.calls', 'Calls of triggers, by what became of them.', '{call}', [
    'acp.trigger.outcome',
  ]);
  const end = (span: Span | null, status: number, errorType: string | null): void => {
    span?.set({ 'http.response.status_code': status });
    telemetry.finish(span, errorType);
  };
  return {
    begin: (parent: TraceParent | null): Span | null => telemetry.begin('acp.trigger.accept', 'Server', parent, {}),
    /** What an unauthenticated caller has written is not told as the name of a trigger. */
    authenticated: (span: Span | null, name: string): void => span?.set({ 'acp.trigger.name': name }),
    answered(span: Span | null, status: number): void {
      // Slack's question whether the address is its owner's is no call.
      if (status === 202) calls.add(1, ['accepted']);
      end(span, status, null);
    },
    refused(span: Span | null, status: number, code: string): void {
      calls.add(1, [outcomes[code] ?? 'rejected']);
      end(span, status, code);
    },
  };
};

export type TriggerTelemetry = ReturnType<typeof createTriggerTelemetry>;
