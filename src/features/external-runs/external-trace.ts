import type { SpanKind } from '../../core/telemetry/span.ts';
import type { Statement } from '../../db/statement.ts';
import { type RunJournal, type StoredSpan, sensitiveText } from '../../engine/record/index.ts';
import type { ExternalTree } from './external-runs.rules.ts';
import { traceAttributes } from './genai-spans.rules.ts';
import type { ReceivedSpan } from './received-spans.ts';

export interface ExternalTraceDeps {
  readonly journal: Pick<RunJournal, 'trace'>;
  readonly settings: {
    /** Null: traces are not stored. */
    readonly maxSpansPerRun: number | null;
    readonly recordSensitiveData: boolean;
    readonly maxPayloadLength: number;
  };
  readonly newId: () => string;
}

const kinds: readonly SpanKind[] = ['Internal', 'Internal', 'Server', 'Client', 'Producer', 'Consumer'];

const byStart = (a: ReceivedSpan, b: ReceivedSpan): number =>
  a.startedAt - b.startedAt || (a.spanId < b.spanId ? -1 : 1);

/** Spans of each of several trees in a part. Parents come before what is below them; the tree of the root has all. */
export const spansOfTrees = (
  trees: readonly ExternalTree[],
  spans: readonly ReceivedSpan[],
): ReadonlyMap<string, readonly ReceivedSpan[]> => {
  const tops = new Set(trees.map(({ runs: [top] }) => top.spanId));
  const root = spans[0]?.spanId ?? '';
  tops.delete(root);
  const topOf = new Map<string, string>();
  for (const { spanId, parentSpanId } of spans) {
    const top = tops.has(spanId) ? spanId : topOf.get(parentSpanId ?? '');
    if (top !== undefined) topOf.set(spanId, top);
  }
  const below = Map.groupBy(spans, ({ spanId }) => topOf.get(spanId) ?? '');
  return new Map(
    trees.map(({ runs: [top] }) => [top.spanId, top.spanId === root ? spans : (below.get(top.spanId) ?? [])]),
  );
};

/** The write of the trace of a tree of runs, none where traces are not stored. */
export const createExternalTrace =
  ({ journal, settings, newId }: ExternalTraceDeps) =>
  (tenantId: string, tree: ExternalTree, spans: readonly ReceivedSpan[]): Statement[] => {
    const { maxSpansPerRun, recordSensitiveData } = settings;
    if (maxSpansPerRun === null) return [];
    const [root] = tree.runs;
    const runOf = new Map(tree.runs.map(({ spanId, id }) => [spanId, id]));
    const kept = [...spans].sort(byStart).slice(0, maxSpansPerRun * tree.runs.length);
    const idOf = new Map(kept.map(({ spanId }) => [spanId, newId()]));
    const contentOf = recordSensitiveData ? (text: string) => sensitiveText(text, settings) : null;
    const stored = kept.map((span): StoredSpan => {
      const runId = runOf.get(span.spanId);
      return {
        id: idOf.get(span.spanId) ?? '',
        parentId: idOf.get(span.parentSpanId ?? '') ?? null,
        spanId: span.spanId,
        name: span.name,
        kind: kinds[span.kind] ?? 'Internal',
        startedAt: span.startedAt,
        endedAt: span.endedAt,
        status: span.isError ? 'Error' : 'Unset',
        attributes: { ...traceAttributes(span, contentOf), ...(runId === undefined ? {} : { 'acp.run.id': runId }) },
      };
    });
    const { traceId } = tree;
    return [
      journal.trace({
        ...{ id: newId(), tenantId, runId: root.id, traceId },
        ...{ startedAt: root.startedAt, endedAt: root.endedAt, spans: stored },
      }),
    ];
  };
