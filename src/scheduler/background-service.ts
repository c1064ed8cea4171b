/** Work that a process does again and again for the whole store, and that another process can take over. */
export interface BackgroundService {
  /**
   * Begins, also again after a stop. `mayAct` turns false when another process may be doing the work: it is asked before
   * every step that writes, because a process that was suspended wakes up in the middle of one.
   */
  start(mayAct: () => boolean): void;
  /** Begins nothing more, and resolves when what was under way has ended. */
  stop(): Promise<void>;
}

/** The names under which processes agree on who does what. */
export type ServiceName =
  | 'model-health'
  | 'run-reconciliation'
  | 'approval-expiration'
  | 'retention'
  | 'loose-contents'
  | 'partitions';
