import type { PolicyTestGap } from './policy-tests.schema.ts';

type Part = PolicyTestGap['part'];
type Reason = PolicyTestGap['reason'];

const samples = 5;

/** What could not be looked at: it is counted, and never passes for looked at. */
export const createGaps = () => {
  const gaps = new Map<string, PolicyTestGap>();
  return {
    add(runId: string, part: Part, reason: Reason): void {
      const key = `${part} ${reason}`;
      const gap = gaps.get(key) ?? { part, reason, count: 0, sampleRunIds: [] };
      gaps.set(key, gap);
      gap.count += 1;
      if (gap.sampleRunIds.length < samples && gap.sampleRunIds.at(-1) !== runId) gap.sampleRunIds.push(runId);
    },
    get all() {
      return [...gaps.values()];
    },
  };
};

export type Gaps = ReturnType<typeof createGaps>;
