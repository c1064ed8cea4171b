import type { FlowStore } from './flow.store.ts';

const forgetEveryMs = 600_000;
// A clock that is set back does not open a window a second time.
const forgottenAfterMs = 7_200_000;

/** What has ended is of use to nobody; a statement now and then keeps the tables small. */
export const forgetting = (flows: Pick<FlowStore, 'forget'>) => {
  let forgottenAt = Number.NEGATIVE_INFINITY;
  return async (now: number): Promise<void> => {
    if (now - forgottenAt < forgetEveryMs) return;
    forgottenAt = now;
    await flows.forget(now - forgottenAfterMs);
  };
};
