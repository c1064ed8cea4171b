import type { RetentionTarget } from './retention.schema.ts';
import type { ArchivedRow } from './sweep-rows.store.ts';

/** A batch of rows that are about to be deleted, as the API shows them. */
export interface ArchiveBatch {
  readonly tenantId: string;
  readonly target: RetentionTarget;
  readonly rows: readonly ArchivedRow[];
}

/**
 * Takes rows before retention deletes them. Resolving means that they are safe; a batch may come twice, so that rows are
 * to be told apart by their ids.
 */
export interface ArchiveSink {
  archive(batch: ArchiveBatch, signal: AbortSignal): Promise<void>;
}
