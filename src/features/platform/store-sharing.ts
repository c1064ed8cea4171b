import type { ReplicaState } from '../../db/dialect.ts';

/** How well a process does beside the others of its store. */
export interface StoreSharing {
  /** Copies of what the store says that are too old to decide by. */
  staleState(): readonly string[];
  /** False: what others change is seen by asking the store alone, and later. */
  hearsOthers(): boolean;
  /** Why this process writes nothing any more; null: it does. */
  heldFor(): string | null;
  /** How far the time of this process is ahead of the store's, in milliseconds. */
  clockOffsetMs(): number;
  /** True: further than it may be. */
  isClockOff(): boolean;
  /** Parts of tables that should be there; what belongs there is stored, and is found, but goes less easily later. */
  missingPartitions(): readonly string[];
  /** Of the copy that history is read from; null: there is none. */
  replica(): ReplicaState | null;
}
