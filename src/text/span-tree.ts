import type { RunTrace } from '../features/runs/runs.schema.ts';

type TraceSpan = RunTrace['spans'][number];

/** A span of a trace, and the branches that lead to it: `│  └─ `. */
export interface SpanRow {
  readonly span: TraceSpan;
  readonly lead: string;
}

/** The spans of a trace from the top down, in the order of their starts. One whose parent is not there stands at the top. */
export const spanRows = (spans: readonly TraceSpan[]): readonly SpanRow[] => {
  const known = new Set(spans.map(({ id }) => id));
  const childrenOf = Map.groupBy(spans, ({ parentId }) => (parentId !== null && known.has(parentId) ? parentId : null));
  const below = (span: TraceSpan, lead: string): SpanRow[] => {
    const children = childrenOf.get(span.id) ?? [];
    return children.flatMap((child, index) => {
      const isLast = index === children.length - 1;
      return [
        { span: child, lead: `${lead}${isLast ? '└─ ' : '├─ '}` },
        ...below(child, `${lead}${isLast ? '   ' : '│  '}`),
      ];
    });
  };
  return (childrenOf.get(null) ?? []).flatMap((span) => [{ span, lead: '' }, ...below(span, '')]);
};

/** What a span is about: the agent, model, tool or whatever else names it. */
export const spanSubject = ({ attributes }: TraceSpan): string =>
  attributes['gen_ai.tool.name'] ??
  attributes['acp.guard.name'] ??
  attributes['gen_ai.agent.name'] ??
  attributes['gen_ai.request.model'] ??
  '';
