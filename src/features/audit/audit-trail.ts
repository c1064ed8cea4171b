import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import type { Tables } from '../../db/tables.ts';
import { appendEntries, runWrites } from './audit.store.ts';

export interface AuditTrailDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** The trail of stores that decide inside a transaction what they change. */
export interface AuditLog extends AuditTrail {
  /** As `record`, inside a transaction of the caller: what throws here must roll it back. */
  append(db: Kysely<Tables>, entries: readonly AuditEntry[]): Promise<void>;
}

// The store is away or full; asking sooner helps nobody.
const retryAfterMs = 5000;

export const createAuditTrail = ({ storage, log, now, newId }: AuditTrailDeps): AuditLog => {
  const failed = (entries: readonly AuditEntry[], error: unknown, message: string): void => {
    for (const { tenantId, action, entity } of entries) log.error({ error, tenantId, action, entity }, message);
  };
  const refused = (entries: readonly AuditEntry[], error: unknown): AcpError => {
    failed(entries, error, 'The audit trail could not be written and the change was refused');
    const message = 'The audit trail cannot be written, so nothing was changed.';
    return new AcpError('audit-unavailable', message, { cause: error, details: { retryAfterMs } });
  };

  const append = async (db: Kysely<Tables>, entries: readonly AuditEntry[]): Promise<void> => {
    try {
      await appendEntries(db, entries, { now, newId });
    } catch (error) {
      throw refused(entries, error);
    }
  };

  return {
    append,
    async record(entry, writes) {
      const entries = Array.isArray(entry) ? (entry as readonly AuditEntry[]) : [entry as AuditEntry];
      try {
        await storage.transaction(async (db) => {
          await runWrites(db, writes);
          await append(db, entries);
        });
      } catch (error) {
        // Without writes everything that fails is the trail's failure, the transaction itself included.
        if (writes.length > 0 || (error instanceof AcpError && error.code === 'audit-unavailable')) throw error;
        throw refused(entries, error);
      }
    },
    async note(entry) {
      try {
        await storage.transaction((db) => appendEntries(db, [entry], { now, newId }));
      } catch (error) {
        failed([entry], error, 'The audit trail could not be written; the change stands');
      }
    },
  };
};
