import type { Span } from '../../../core/telemetry/span.ts';
import { traceHeaders } from '../../../core/telemetry/trace-context.ts';
import type { ModelToolCall } from '../../../providers/models/model-provider.ts';
import type { ActiveRun } from '../../active-run.ts';
import { type RecordPorts, sensitiveText } from '../../record/index.ts';
import type { OpensSpan, RegisteredTool, ToolOutcome } from '../../tools/index.ts';

/** The span of a call; a child run that the call starts belongs below it. */
export const openToolSpan = (
  { trace }: ActiveRun,
  call: ModelToolCall,
  tool: RegisteredTool | undefined,
): Span | null => {
  if (trace === null) return null;
  const { toolCallId, toolName } = call;
  const span = trace.open('acp.tool.call', 'Internal', {
    'acp.tenant.id': trace.tenantId,
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': toolName,
    'gen_ai.tool.call.id': toolCallId,
    'gen_ai.tool.type':
      tool?.descriptor.kind === 'Mcp' || tool?.descriptor.kind === 'RemoteAgent' ? 'extension' : 'function',
    'acp.tool.source': tool?.descriptor.source,
    // A name that the model has made up: too many of those would be names of spans.
    'acp.tool.unknown': tool === undefined ? true : null,
  });
  trace.bindCall(toolCallId, span);
  return span;
};

/** What the service's own tools open spans below their call with. */
export const spansBelow = ({ trace }: ActiveRun, parent: Span | null): { openSpan?: OpensSpan } => {
  if (trace === null || parent === null) return {};
  return {
    openSpan(name, attributes, kind = 'Internal') {
      const span = trace.open(name, kind, attributes, parent);
      return {
        headers: traceHeaders(span),
        set: (more) => span.set(more),
        close: (errorType) => trace.close(span, errorType),
      };
    },
  };
};

/** Counts the call and ends its span. `isKnown` is false for a name that the model has made up. */
export const endToolSpan = (
  run: ActiveRun,
  ports: RecordPorts,
  { toolName }: ModelToolCall,
  isKnown: boolean,
  span: Span | null,
  outcome: ToolOutcome,
): void => {
  const { status, errorClass } = outcome;
  ports.metrics.toolEnded(isKnown ? toolName : null, outcome);
  if (span === null) return;
  span.set({ 'acp.tool.outcome': status });
  if (ports.telemetry.settings.recordSensitiveData)
    span.set({
      'gen_ai.tool.call.arguments': sensitiveText(outcome.arguments, ports.settings.recording),
      'gen_ai.tool.call.result': sensitiveText(outcome.text, ports.settings.recording),
    });
  const failed = status !== 'succeeded' && status !== 'waiting';
  run.trace?.close(span, failed ? (errorClass ?? status) : null);
};
