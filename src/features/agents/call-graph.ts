/** The agents that each agent may call; a name that is not a key is no agent. */
export type CallGraph = ReadonlyMap<string, readonly string[]>;

export interface CallPaths {
  /** The first cycle that is met, its first name repeated at the end; null when there is none. */
  readonly cycle: readonly string[] | null;
  /** Calls on the longest path; what lies behind a cycle is not counted. */
  readonly depth: number;
}

interface Step {
  readonly name: string;
  readonly callees: readonly string[];
  next: number;
  depth: number;
}

/** Follows every call from `start`. Iterative, because a chain may be as long as a tenant has agents. */
export const followCalls = (graph: CallGraph, start: string): CallPaths => {
  const depths = new Map<string, number>();
  const open = new Set<string>();
  const path: Step[] = [];
  let cycle: readonly string[] | null = null;
  const enter = (name: string): void => {
    const callees = (graph.get(name) ?? []).filter((callee) => graph.has(callee));
    path.push({ name, callees, next: 0, depth: 0 });
    open.add(name);
  };
  enter(start);
  for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
    const callee = step.callees[step.next++];
    if (callee === undefined) {
      path.pop();
      open.delete(step.name);
      depths.set(step.name, step.depth);
      const caller = path.at(-1);
      if (caller !== undefined) caller.depth = Math.max(caller.depth, step.depth + 1);
    } else if (open.has(callee)) {
      const names = path.map(({ name }) => name);
      cycle ??= [...names.slice(names.indexOf(callee)), callee];
    } else if (depths.has(callee)) step.depth = Math.max(step.depth, (depths.get(callee) ?? 0) + 1);
    else enter(callee);
  }
  return { cycle, depth: depths.get(start) ?? 0 };
};
