export interface KeptState {
  /**
   * `table` and `entries`: copies of rows, see `InstanceState`. `own`: what only the process that does the work can
   * have; what others have to know of it is in the store.
   */
  readonly kind: 'table' | 'entries' | 'own';
  /** Tables of the store that say what is true; empty: this process alone does, and nobody else is asked. */
  readonly truth: readonly string[];
  /**
   * How old it may be in a process that shares its store; 0: it decides nothing without the store. Null: it is nobody
   * else's. The owner of a store reads once.
   */
  readonly sharedAgeMs: number | null;
  /** False: nothing is decided by it, and so nothing refused while it cannot be read; whoever tells it says so. */
  readonly decides?: boolean;
}

/** All that a process keeps about the store between two requests; docs/design/scale-out.md has the reasons, and the test of each. */
export const instanceState = {
  emergencyStops: { kind: 'table', truth: ['emergency_stops'], sharedAgeMs: 1000 },
  providerBindings: { kind: 'table', truth: ['tenant_provider_bindings'], sharedAgeMs: 5000 },
  webhookSubscriptions: { kind: 'table', truth: ['webhooks'], sharedAgeMs: 5000 },
  mcpServers: { kind: 'table', truth: ['mcp_servers'], sharedAgeMs: 5000 },
  egressPolicies: { kind: 'table', truth: ['tenant_egress_policies'], sharedAgeMs: 5000 },
  modelHealth: { kind: 'table', truth: ['model_health'], sharedAgeMs: 5000, decides: false },
  agentVersions: { kind: 'entries', truth: ['agents'], sharedAgeMs: 5000 },
  skillFingerprints: { kind: 'entries', truth: ['skills'], sharedAgeMs: 5000 },
  quotaRules: { kind: 'entries', truth: ['quotas'], sharedAgeMs: 5000 },
  approvalRules: { kind: 'entries', truth: ['approval_rules'], sharedAgeMs: 5000 },
  apiKeys: { kind: 'entries', truth: ['api_keys'], sharedAgeMs: 5000 },
  // Lists are asked for by the hash that the record has.
  mcpCatalogs: { kind: 'own', truth: ['mcp_catalogs'], sharedAgeMs: 5000 },
  compiledAgents: { kind: 'own', truth: ['agents', 'skills'], sharedAgeMs: 5000 },
  liveRuns: { kind: 'own', truth: ['runs', 'run_heartbeats'], sharedAgeMs: 0 },
  liveStreams: { kind: 'own', truth: ['run_events'], sharedAgeMs: 0 },
  runCancels: { kind: 'own', truth: ['run_cancels'], sharedAgeMs: 0 },
  // Nothing of it is in memory; it is named because a process that kept answers would have to say how old they may be.
  responseCache: { kind: 'own', truth: ['response_cache'], sharedAgeMs: 0 },
  treeBudgets: { kind: 'own', truth: [], sharedAgeMs: null },
  // Saves tries in front of the row's lock, which decides; who waits for another process has a row in its line (docs/design/sessions.md).
  sessionLine: { kind: 'own', truth: ['sessions', 'session_places'], sharedAgeMs: 0 },
  sessionPauses: { kind: 'own', truth: ['session_requests', 'approvals'], sharedAgeMs: 0 },
  quotaHolds: { kind: 'own', truth: ['quota_holds', 'quota_usage'], sharedAgeMs: 0 },
  jobLeases: { kind: 'own', truth: ['jobs'], sharedAgeMs: 0 },
  serviceLeases: { kind: 'own', truth: ['service_leases'], sharedAgeMs: 0 },
  idempotencyMarks: { kind: 'own', truth: ['idempotency_keys'], sharedAgeMs: 0 },
  unwrittenRuns: { kind: 'own', truth: [], sharedAgeMs: null },
  tokenCallers: { kind: 'own', truth: [], sharedAgeMs: null },
  // What this process met of a provider; another one finds out by its own calls (docs/design/scale-out.md).
  circuitBreakers: { kind: 'own', truth: [], sharedAgeMs: null },
  rateLimits: { kind: 'own', truth: [], sharedAgeMs: null },
  triggerWindows: { kind: 'own', truth: [], sharedAgeMs: null },
  // Saves writes in front of the row that decides which of several calls is the first.
  triggerCalls: { kind: 'own', truth: ['trigger_calls'], sharedAgeMs: 0 },
  storeClock: { kind: 'own', truth: [], sharedAgeMs: null },
} as const satisfies Readonly<Record<string, KeptState>>;

export type InstanceStateName = keyof typeof instanceState;

interface Leftover {
  /** True: another process of a shared store may be at it, and the one that starts leaves it alone. */
  readonly ownerOnly: boolean;
  /** How it ends where nobody owns the store alone. */
  readonly otherwise: string;
}

/** What a process that died leaves open in the store, in the order in which the next one closes it. */
export const leftovers = {
  runs: { ownerOnly: true, otherwise: 'closed once the heartbeat of their process has expired' },
  jobs: {
    ownerOnly: true,
    otherwise: 'taken when their lease expires, or 14 s after the last heartbeat of their worker',
  },
  quotaHolds: {
    ownerOnly: true,
    otherwise: 'they end with their runs, or 14 s after the last heartbeat of their process',
  },
  sessionLocks: { ownerOnly: true, otherwise: 'they expire after 14 s' },
  heartbeats: { ownerOnly: false, otherwise: 'a heartbeat of an ended run has no effect' },
  idempotencyMarks: { ownerOnly: true, otherwise: 'they expire after a minute' },
  serviceLeases: { ownerOnly: true, otherwise: 'they expire after their duration' },
  attachmentDrafts: { ownerOnly: true, otherwise: 'removed once they are too old to be under way' },
  deletedSessions: { ownerOnly: false, otherwise: 'the first process that finds them frees their messages' },
  webhookDeliveries: { ownerOnly: true, otherwise: 'queued again when the lease of their job expires' },
  retentionRuns: { ownerOnly: true, otherwise: 'closed by the next attempt of their job, or with its loss' },
} as const satisfies Readonly<Record<string, Leftover>>;

export type LeftoverName = keyof typeof leftovers;
