/** Where the counters of a tree's root are. */
export interface CountedRoot {
  readonly tenantId: string;
  readonly agentName: string;
  /** Local day of the admission. */
  readonly day: string;
}

/** Root runs of an agent that are queued or executing. */
export interface OpenRuns {
  readonly agentName: string;
  readonly count: number;
}

/** The first of the month of a day. */
export const monthOf = (day: string): string => `${day.slice(0, 7)}-01`;

// Only a cache: writes that could have been one are two where it forgets.
const maxKnownAgents = 1000;

/** The same object for the same counters, for as long as many runs count there, so that their bookings can become one. */
export class CountedRoots {
  readonly #byAgent = new Map<string, CountedRoot>();

  of({ tenantId, agentName, day }: CountedRoot): CountedRoot {
    const root = this.#byAgent.get(agentName);
    if (root !== undefined && root.tenantId === tenantId && root.day === day) return root;
    const fresh: CountedRoot = { tenantId, agentName, day };
    if (this.#byAgent.size >= maxKnownAgents) this.#byAgent.clear();
    this.#byAgent.set(agentName, fresh);
    return fresh;
  }
}
