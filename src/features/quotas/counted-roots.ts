/** Where the counters of a tree's root are. */
export interface CountedRoot {
  readonly tenantId: string;
  readonly agentName: string;
  /** Local day of the admission. */
  readonly day: string;
}

/** One object for all that is booked there, so that writes of one transaction can become one. */
export interface BookedRoot extends CountedRoot {
  /** The same for what is asked of these counters. */
  readonly questions: object;
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

/** The same object for the same counters, for as long as many runs count there. */
export class CountedRoots {
  readonly #byAgent = new Map<string, BookedRoot>();

  of({ tenantId, agentName, day }: CountedRoot): BookedRoot {
    const known = this.#byAgent.get(agentName);
    if (known !== undefined && known.tenantId === tenantId && known.day === day) return known;
    const made: BookedRoot = { tenantId, agentName, day, questions: {} };
    if (this.#byAgent.size >= maxKnownAgents) this.#byAgent.clear();
    this.#byAgent.set(agentName, made);
    return made;
  }
}
