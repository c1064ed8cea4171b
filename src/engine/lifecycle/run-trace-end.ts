import type { AttributeValue } from '../../core/telemetry/span.ts';
import type { Statement } from '../../db/statement.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { ActiveRun } from '../active-run.ts';
import type { RecordPorts, StoredSpan } from '../record/index.ts';

/** What the end of a run says on its span. Said again when the end has to be written in another way. */
export const describeEnd = (
  { trace }: ActiveRun,
  status: string,
  errorType: string | null,
  usage: ModelUsage | null,
): void => {
  trace?.span.set({
    'acp.run.status': status,
    'error.type': errorType,
    'gen_ai.usage.input_tokens': usage?.inputTokens,
    'gen_ai.usage.output_tokens': usage?.outputTokens,
  });
};

const textOf = (value: AttributeValue): string => (Array.isArray(value) ? value.join(', ') : String(value));

const hasFailed = (status: string): boolean => status === 'Failed' || status === 'Canceled';

/** What of the trace of a tree was too much to keep; said once, when its end is stored. */
export const countDropped = (run: ActiveRun, ports: RecordPorts, status: string): void => {
  if (run.plan.parent === null) ports.metrics.spansDropped(run.trace?.stored(hasFailed(status))?.dropped ?? 0);
};

/** The writes that keep the trace of a tree, with the end of its root; none for a child or a tree that is not sampled. */
export const traceStatements = (run: ActiveRun, ports: RecordPorts, status: string): readonly Statement[] => {
  if (run.trace === null || run.plan.parent !== null) return [];
  const failed = hasFailed(status);
  const stored = run.trace.stored(failed);
  if (stored === null) return [];
  const endedAt = ports.now();
  const ids = new Map(stored.spans.map((span) => [span.spanId, ports.newId()]));
  const spans = stored.spans.map((span): StoredSpan => {
    const isRoot = span === run.trace?.span;
    return {
      id: ids.get(span.spanId) ?? '',
      // A parent outside the tree, or one of too many, is not in the stored trace.
      parentId: ids.get(span.parentSpanId ?? '') ?? null,
      spanId: span.spanId,
      name: span.name,
      kind: span.kind,
      startedAt: Math.floor(span.startedAt),
      // The root ends with this write; a child that its caller no longer waited for may go on.
      endedAt: isRoot ? endedAt : span.endedAt === null ? null : Math.floor(span.endedAt),
      status: isRoot ? (failed ? 'Error' : 'Unset') : span.status,
      attributes: Object.fromEntries(Object.entries(span.attributes).map(([name, value]) => [name, textOf(value)])),
    };
  });
  const { tenantId } = run.plan;
  const { traceId, startedAt } = run.trace.span;
  return [
    ports.journal.trace({
      id: ports.newId(),
      tenantId,
      runId: run.id,
      traceId,
      startedAt: Math.floor(startedAt),
      endedAt,
      spans,
    }),
  ];
};
