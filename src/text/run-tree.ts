import type { RunRecord } from '../features/runs/runs.schema.ts';

/** A run of a tree, and the branches that lead to it: `│  └─ `. */
export interface TreeRow {
  readonly run: RunRecord;
  readonly lead: string;
}

/** The runs of a tree from its root down. A run whose parent is cut off by the service's limit stands at the top. */
export const treeRows = (runs: readonly RunRecord[]): readonly TreeRow[] => {
  const ids = new Set(runs.map(({ id }) => id));
  const childrenOf = Map.groupBy(runs, ({ parentRunId }) =>
    parentRunId !== null && ids.has(parentRunId) ? parentRunId : null,
  );
  const below = (run: RunRecord, lead: string): TreeRow[] => {
    const children = childrenOf.get(run.id) ?? [];
    return children.flatMap((child, index) => {
      const isLast = index === children.length - 1;
      return [
        { run: child, lead: `${lead}${isLast ? '└─ ' : '├─ '}` },
        ...below(child, `${lead}${isLast ? '   ' : '│  '}`),
      ];
    });
  };
  return (childrenOf.get(null) ?? []).flatMap((root) => [{ run: root, lead: '' }, ...below(root, '')]);
};
