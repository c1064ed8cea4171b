import type { PolicyTestGap } from './policy-tests.schema.ts';

type Part = PolicyTestGap['part'];
type Reason = PolicyTestGap['reason'];

/** What could not be looked at: it is counted, and never passes for looked at. */
export interface Gaps {
  add(runId: string, part: Part, reason: Reason): void;
  readonly all: readonly PolicyTestGap[];
}

const samples = 5;

export const createGaps = (): Gaps => {
  const found = new Map<string, { part: Part; reason: Reason; count: number; sampleRunIds: string[] }>();
  return {
    add(runId, part, reason) {
      const key = `${part} ${reason}`;
      const gap = found.get(key) ?? { part, reason, count: 0, sampleRunIds: [] };
      found.set(key, gap);
      gap.count += 1;
      if (gap.sampleRunIds.length < samples && gap.sampleRunIds.at(-1) !== runId) gap.sampleRunIds.push(runId);
    },
    get all() {
      return [...found.values()];
    },
  };
};
