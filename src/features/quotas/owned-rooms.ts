import type { CallDecision, CallRooms } from './call-decision.ts';
import { type CountedRoot, monthOf } from './counted-roots.ts';
import type { QuotaHolds } from './quota-holds.store.ts';
import { anyUse, limitingUse } from './quota-room.rules.ts';
import type { QuotaRules, QuotaStore } from './quotas.store.ts';

export interface OwnedRoomsDeps {
  readonly store: Pick<QuotaStore, 'usageOf'>;
  readonly rules: QuotaRules;
  readonly holds: QuotaHolds;
  readonly decideOn: CallDecision;
}

/** The periods and scopes that calls of these roots count in. */
export const scopesOf = (roots: readonly CountedRoot[]) => ({
  starts: [...new Set(roots.flatMap(({ day }) => [day, monthOf(day)]))],
  names: ['', ...new Set(roots.map(({ agentName }) => agentName))],
});

/** The room of calls in a store with one owner: what calls hold is in its memory. */
export const createOwnedRooms = ({ store, rules, holds, decideOn }: OwnedRoomsDeps): CallRooms => {
  const read = async (tenantId: string, roots: readonly CountedRoot[]) => {
    const { starts, names } = scopesOf(roots);
    const limiting = (await rules.read(tenantId)) ?? [];
    const isLimited = roots.some(({ agentName }) => limitingUse(limiting, agentName).length > 0);
    const rows = isLimited ? await store.usageOf(tenantId, starts, names) : [];
    return { limiting, rows };
  };
  return {
    async look(tenantId, calls) {
      const roots = calls.map(({ counted }) => counted);
      const { limiting, rows } = await holds.readSteadily(tenantId, () => read(tenantId, roots));
      const view = { rules: limiting, counters: rows, holds: () => holds.of(tenantId) };
      return decideOn(view, ({ runId, counted }, held, terms) => {
        holds.take({ runId, root: counted, isAdmission: false, held }, !terms.isFree);
        return terms;
      });
    },
    free: ({ runId }, root) => holds.take({ runId, root, isAdmission: false, held: anyUse }, false),
    used: holds.used,
    unheardMs: null,
  };
};
