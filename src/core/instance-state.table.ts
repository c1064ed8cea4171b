interface KeptState {
  /**
   * `table` and `entries`: copies of rows, see `InstanceState`. `port`: what only the process that does the work can
   * have; what others have to know of it is in the store.
   */
  readonly kind: 'table' | 'entries' | 'port';
  /** Tables of the store that say what is true; empty: this process alone does, and nobody else is asked. */
  readonly truth: readonly string[];
  /**
   * How old a copy may be in a process that shares its store; 0: it decides nothing, the store is asked each time. Null:
   * it is nobody else's business. The owner of a store reads once.
   */
  readonly sharedAgeMs: number | null;
}

/** All that a process keeps about the store between two requests; docs/decisions/0113 says the reasons. */
export const instanceState = {
  emergencyStops: { kind: 'table', truth: ['emergency_stops'], sharedAgeMs: 1000 },
  providerBindings: { kind: 'table', truth: ['tenant_provider_bindings'], sharedAgeMs: 5000 },
  egressPolicies: { kind: 'table', truth: ['tenant_egress_policies'], sharedAgeMs: 5000 },
  agentVersions: { kind: 'entries', truth: ['agents'], sharedAgeMs: 5000 },
  skillFingerprints: { kind: 'entries', truth: ['skills'], sharedAgeMs: 5000 },
  quotaRules: { kind: 'entries', truth: ['quotas'], sharedAgeMs: 5000 },
  approvalRules: { kind: 'entries', truth: ['approval_rules'], sharedAgeMs: 5000 },
  apiKeys: { kind: 'entries', truth: ['api_keys'], sharedAgeMs: 5000 },
} as const satisfies Readonly<Record<string, KeptState>>;

export type InstanceStateName = keyof typeof instanceState;
