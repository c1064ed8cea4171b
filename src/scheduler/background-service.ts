/** Work that a process does again and again for the whole store, and that another process can take over. */
export interface BackgroundService {
  /**
   * Begins, also again after a stop. `mayAct` turns false when another process may be doing the work: it is asked before
   * every step that writes, because a process that was suspended wakes up in the middle of one.
   * `held` is the lease, for units whose writes would not be the same when they came later: their last step asserts it.
   */
  start(mayAct: () => boolean, held: () => HeldLease | null): void;
  /** Begins nothing more, and resolves when what was under way has ended. */
  stop(): Promise<void>;
}

/** A lease as this process has it. Whoever takes it over begins a further term. */
export interface HeldLease {
  readonly name: ServiceName;
  readonly owner: string;
  readonly term: number;
}

/** The names under which processes agree on who does what. */
export type ServiceName =
  | 'schedule-dispatch'
  | 'model-health'
  | 'mcp-discovery'
  | 'run-reconciliation'
  | 'approval-expiration'
  | 'retention'
  | 'loose-contents'
  | 'partitions';
