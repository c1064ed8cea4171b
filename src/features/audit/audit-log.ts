import { AcpError } from '../../contract/errors.ts';
import type { SaveQuery } from '../../contract/save-query.ts';
import type { AuditedCall } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { UnitOfWork } from '../../db/unit-of-work.ts';
import { type AuditEntry, auditStore } from './audit.store.ts';

export interface AuditLogDeps {
  readonly storage: Pick<Storage, 'stores' | 'transaction'>;
  readonly telemetry: Telemetry;
  readonly log: Pick<Logger, 'error'>;
  readonly now: () => number;
  readonly newId: () => string;
}

/** One entity around a change, as its GET answers it; null where there is none. Secrets are masked by the trail. */
export interface ChangedEntity {
  /** Without its kind, which the operation declares. */
  readonly id: string;
  readonly before: object | null;
  readonly after: object | null;
  /** The tenant that the change is about; its trail has the entry, too. Default: that of the call. */
  readonly aboutTenant?: string;
}

/** Tells of a changed entity. `by`: whose change it is, where that is not the call itself. */
export type TellChange = (entity: ChangedEntity, by?: AuditedCall) => void;

// The store is unavailable or full; asking sooner does not help.
const retryAfterMs = 5000;

const actionAttribute = 'acp.audit.action';

const chainLine = (tenantId: string): string => `audit ${tenantId}`;

const entriesOf = ({ tenantId, principal, audit }: AuditedCall, entity: ChangedEntity): AuditEntry[] =>
  [...new Set([tenantId, entity.aboutTenant ?? tenantId])].map((chain) => ({
    tenantId: chain,
    actor: principal.actor,
    action: audit.action,
    entity: `${audit.entity}:${entity.id}`,
    before: entity.before,
    after: entity.after,
  }));

/** Who changed what, in a chain of hashes per tenant. Design: docs/design/audit.md. */
export const createAuditLog = ({ storage, telemetry, log, now, newId }: AuditLogDeps) => {
  const written = telemetry.metrics.counter(
    'acp.audit.entries',
    'Entries of audit trails that were written.',
    '{entry}',
    [actionAttribute],
  );
  const failures = telemetry.metrics.counter(
    'acp.audit.write_failures',
    'Entries that could not be written: the change was refused, or stands without its entry.',
    '{entry}',
    [actionAttribute, 'acp.audit.outcome'],
  );
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
  const swallowed = (entries: readonly AuditEntry[], error: unknown): void =>
    failed(entries, error, 'swallowed', 'The audit trail could not be written; the change stands');

  const append = (stores: UnitOfWork, entries: readonly AuditEntry[]): Promise<void> =>
    stores(auditStore).append(entries, { now, newId });

  /** As the last of the unit: the heads of the chains are locked for as short as can be. */
  const appendClosed = async (stores: UnitOfWork, entries: readonly AuditEntry[]): Promise<void> => {
    if (entries.length === 0) return;
    try {
      await append(stores, entries);
    } catch (error) {
      throw stores.isRepeated(error) ? error : refused(entries, error);
    }
  };
  /** What is to be told of it once the unit has come to its end: before that it may be done again. */
  const appendNoted = async (stores: UnitOfWork, entries: readonly AuditEntry[]): Promise<() => void> => {
    if (entries.length === 0) return () => undefined;
    try {
      await stores.part(() => append(stores, entries));
      return () => count(entries);
    } catch (error) {
      if (stores.isRepeated(error)) throw error;
      return () => swallowed(entries, error);
    }
  };

  /**
   * The unit of work of an audited operation: what `work` writes and what it tells are committed together. Throws
   * `audit-unavailable`, and changes nothing, when a `fail-closed` entry cannot be written. A change of which nothing is
   * told is a fault of the program, and is not committed.
   */
  const change = async <T>(
    call: AuditedCall,
    work: (stores: UnitOfWork, tell: TellChange) => Promise<T>,
  ): Promise<T> => {
    const closed: AuditEntry[] = [];
    const noted: AuditEntry[] = [];
    let tellNoted = (): void => undefined;
    const unit = async (stores: UnitOfWork): Promise<T> => {
      // It may be done again, and then tells everything anew.
      closed.length = 0;
      noted.length = 0;
      const done = await work(stores, (entity, by = call) =>
        (by.audit.mode === 'noted' ? noted : closed).push(...entriesOf(by, entity)),
      );
      if (closed.length + noted.length === 0 && stores.hasChanged())
        throw new Error(`A change of ${call.audit.action} has no audit entry.`);
      await appendClosed(stores, closed);
      tellNoted = await appendNoted(stores, noted);
      return done;
    };
    const result = await storage.transaction(unit, chainLine(call.tenantId));
    count(closed);
    tellNoted();
    return result;
  };

  return {
    change,
    /**
     * The unit of an operation that saves. In a dry run it gets stores outside a transaction, which may belong to somebody
     * else or be read-only: it comes to its answer without a write.
     */
    save: <T>(
      call: AuditedCall,
      { dryRun }: Pick<SaveQuery, 'dryRun'>,
      work: (stores: Storage['stores'], tell: TellChange) => Promise<T>,
    ): Promise<T> => (dryRun === true ? work(storage.stores, () => undefined) : change(call, work)),
    /**
     * An entry about something that is not a row. Fail-closed, it is written before the effect; noted, a failure is only
     * logged.
     */
    async tell(call: AuditedCall, entity: ChangedEntity): Promise<void> {
      const entries = entriesOf(call, entity);
      try {
        await storage.transaction((stores) => append(stores, entries), chainLine(call.tenantId));
        count(entries);
      } catch (error) {
        if (call.audit.mode === 'fail-closed') throw refused(entries, error);
        swallowed(entries, error);
      }
    },
  };
};

export type AuditLog = ReturnType<typeof createAuditLog>;
