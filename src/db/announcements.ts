/**
 * What one process tells the others of its store. `run-events`: a run has committed more events (run id); `watch`: somebody
 * follows a run that does not execute there (run id); `state`: rows have changed that processes keep copies of; `jobs`:
 * one may be due; `cancel`: somebody asks for the end of a run or a job (its id); `session`: a session was given back (its
 * id); `quotas`: something that a tenant's quotas limit has become free (its id); `schedules`: one was saved (when it is due).
 * Design: docs/design/scale-out.md.
 */
export type Topic = 'run-events' | 'watch' | 'state' | 'jobs' | 'cancel' | 'session' | 'quotas' | 'schedules';

export interface Listener {
  /** Another process has announced the key. It does nothing that waits: the next announcement is behind it. */
  heard(key: string): void;
  /** Announcements may have passed unheard, of any key: the store has to be asked. */
  missed(): void;
}

/**
 * Says quickly what the store says in any case: an announcement can be lost, so whoever listens asks the store from time
 * to time, too, and is right without a single one. Where a process has its store to itself nobody is told anything.
 */
export interface Announcements {
  /**
   * Tells the other processes, never this one. After the commit of what it is about: who hears of it reads the store at
   * once. Nothing is waited for; equal keys of one moment are told once. A key has at most 512 bytes and no white space.
   */
  announce(topic: Topic, key: string): void;
  /** Until the returned function is called. */
  listen(topic: Topic, listener: Listener): () => void;
  /** True: others cannot be heard now, and what they change is seen by asking for it alone. */
  deaf(): boolean;
}

/** Of a store that one process has to itself. */
export const noAnnouncements: Announcements = {
  announce: () => undefined,
  listen: () => () => undefined,
  deaf: () => false,
};
