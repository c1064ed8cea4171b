import type { RunRecord } from '../features/runs/runs.schema.ts';

/** A run or a span of a tree, and the branches that lead to it: `│  └─ `. */
export interface TreeRow<T = RunRecord> {
  readonly node: T;
  readonly lead: string;
}

/** The nodes of a tree from its root down, in their order. One whose parent is not there stands at the top. */
export const treeRows = <T extends { readonly id: string }>(
  nodes: readonly T[],
  parentOf: (node: T) => string | null,
): readonly TreeRow<T>[] => {
  const ids = new Set(nodes.map(({ id }) => id));
  const childrenOf = Map.groupBy(nodes, (node) => {
    const parentId = parentOf(node);
    return parentId !== null && ids.has(parentId) ? parentId : null;
  });
  const below = (parent: T, lead: string): TreeRow<T>[] => {
    const children = childrenOf.get(parent.id) ?? [];
    return children.flatMap((node, index) => {
      const isLast = index === children.length - 1;
      return [{ node, lead: `${lead}${isLast ? '└─ ' : '├─ '}` }, ...below(node, `${lead}${isLast ? '   ' : '│  '}`)];
    });
  };
  return (childrenOf.get(null) ?? []).flatMap((node) => [{ node, lead: '' }, ...below(node, '')]);
};

/** A run whose parent is cut off by the service's limit stands at the top. */
export const runTree = (runs: readonly RunRecord[]): readonly TreeRow[] =>
  treeRows(runs, ({ parentRunId }) => parentRunId);
