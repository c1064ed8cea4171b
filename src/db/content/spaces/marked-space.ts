import type { StoreFailure } from '../../dialect.ts';
import type { ConditionWords } from '../../store-condition.ts';
import type { ContentSpace } from './space.ts';

/** A space outside the database. It has a marker, so that another one under its name is noticed. */
export interface MarkedSpace extends ContentSpace {
  /** For the log and for who operates the service. */
  readonly location: string;
  /** What its troubles are called. */
  readonly words: ConditionWords;
  /** Null: it has none, or there is nothing. */
  marker(): Promise<string | null>;
  mark(marker: string): Promise<void>;
  /** Writes something and removes it. */
  probeWrite(): Promise<void>;
  /** What an error means, by its code. */
  classify(error: unknown): StoreFailure;
  /** Everything that lies in it under a name of its own. */
  ids(): AsyncIterable<string>;
  close(): void;
}

/** Under this name, which no content has. */
export const markerName = 'acp-attachments-of';
