import type { Kysely } from 'kysely';
import { AcpError } from '../../contract/errors.ts';
import type { AuditEntry, AuditTrail } from '../../core/audit.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { Tables } from '../../db/tables.ts';
import { appendEntries, runWrites } from './audit.store.ts';

export interface AuditTrailDeps {
  readonly storage: Pick<Storage, 'transaction'>;
  readonly telemetry: Telemetry;
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

const actionAttribute = 'acp.audit.action';

export const createAuditTrail = ({ storage, telemetry, log, now, newId }: AuditTrailDeps): AuditLog => {
  const written = telemetry.metrics.counter('acp.audit.entries', {
    description: 'Entries of audit trails that were written.',
    unit: '{entry}',
    attributes: [actionAttribute],
  });
  const failures = telemetry.metrics.counter('acp.audit.write_failures', {
    description: 'Entries that could not be written: the change was refused, or stands without its entry.',
    unit: '{entry}',
    attributes: [actionAttribute, 'acp.audit.outcome'],
  });
  const count = (entries: readonly AuditEntry[]): void => {
    for (const { action } of entries) written.add(1, [action]);
  };
  const failed = (
    entries: readonly AuditEntry[],
    error: unknown,
    outcome: 'refused' | 'swallowed',
    message: string,
  ): void => {
    for (const { tenantId, action, entity } of entries) {
      failures.add(1, [action, outcome]);
      log.error({ error, tenantId, action, entity }, message);
    }
  };
  const refused = (entries: readonly AuditEntry[], error: unknown): AcpError => {
    failed(entries, error, 'refused', 'The audit trail could not be written and the change was refused');
    const message = 'The audit trail cannot be written, so nothing was changed.';
    return new AcpError('audit-unavailable', message, { cause: error, details: { retryAfterMs } });
  };

  const add = async (db: Kysely<Tables>, entries: readonly AuditEntry[]): Promise<void> => {
    try {
      await appendEntries(db, entries, { now, newId });
    } catch (error) {
      throw refused(entries, error);
    }
  };

  return {
    async append(db, entries) {
      await add(db, entries);
      count(entries);
    },
    async record(entry, writes) {
      const entries = Array.isArray(entry) ? (entry as readonly AuditEntry[]) : [entry as AuditEntry];
      try {
        await storage.transaction(async (db) => {
          await runWrites(db, writes);
          await add(db, entries);
        });
        count(entries);
      } catch (error) {
        // Without writes everything that fails is the trail's failure, the transaction itself included.
        if (writes.length > 0 || (error instanceof AcpError && error.code === 'audit-unavailable')) throw error;
        throw refused(entries, error);
      }
    },
    async note(entry) {
      try {
        await storage.transaction((db) => appendEntries(db, [entry], { now, newId }));
        count([entry]);
      } catch (error) {
        failed([entry], error, 'swallowed', 'The audit trail could not be written; the change stands');
      }
    },
  };
};
