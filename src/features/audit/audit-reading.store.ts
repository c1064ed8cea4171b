import { isoTime } from '../../core/iso-time.ts';
import { defineStore, type StoreOf } from '../../db/define-store.ts';
import type { AuditEntryRow } from '../../db/tables.ts';
import type { AuditRecord } from './audit.schema.ts';
import type { ChainHead } from './chain-check.rules.ts';

/** Times are epoch milliseconds; `after` is inclusive, `before` exclusive. */
export interface AuditRange {
  readonly after: number | null;
  readonly before: number | null;
}

export interface AuditFilter extends AuditRange {
  readonly actor: string | null;
  readonly action: string | null;
  readonly entity: string | null;
  readonly beforeId: string | null;
  readonly limit: number;
}

/** The ids between which the entries of a range stand; null: no bound. */
export interface AuditSpan {
  readonly fromId: string | null;
  readonly toId: string | null;
}

const toRecord = (row: AuditEntryRow): AuditRecord => ({
  id: row.id,
  tenantId: row.tenant_id,
  actor: row.actor,
  action: row.action,
  entity: row.entity,
  before: row.before,
  after: row.after,
  createdAt: isoTime(row.created_at),
  previousHash: row.previous_hash,
  hash: row.hash,
});

// Sorts behind every id, so behind every entry of the tenant.
const nowhere = '~';

export const auditReadingStore = defineStore((storage) => {
  const entries = (tenantId: string) => storage.db.selectFrom('audit_entries').where('tenant_id', '=', tenantId);

  /** Time never runs backwards in a chain, so that a range is one stretch of it, whatever stands inside. */
  const firstSince = async (tenantId: string, time: number): Promise<string> => {
    const [first] = await storage.scan(
      entries(tenantId).select('id').where('created_at', '>=', time).orderBy('id').limit(1),
    );
    return first?.id ?? nowhere;
  };

  return {
    /** Newest first. */
    async list(
      tenantId: string,
      { actor, action, entity, after, before, beforeId, limit }: AuditFilter,
    ): Promise<AuditRecord[]> {
      let query = entries(tenantId).selectAll().orderBy('id', 'desc').limit(limit);
      if (entity !== null) query = query.where('entity', '=', entity);
      if (actor !== null) query = query.where('actor', '=', actor);
      if (action !== null) query = query.where('action', '=', action);
      if (after !== null) query = query.where('created_at', '>=', after);
      if (before !== null) query = query.where('created_at', '<', before);
      if (beforeId !== null) query = query.where('id', '<', beforeId);
      // Without an index for the filter, a long trail may have to be walked.
      const isWalk = [actor, action, after, before].some((filter) => filter !== null);
      return (isWalk ? await storage.history(query) : await query.execute()).map(toRecord);
    },
    async has(tenantId: string, id: string): Promise<boolean> {
      const row = await entries(tenantId).select('id').where('id', '=', id).executeTakeFirst();
      return row !== undefined;
    },
    async span(tenantId: string, { after, before }: AuditRange): Promise<AuditSpan> {
      return {
        fromId: after === null ? null : await firstSince(tenantId, after),
        toId: before === null ? null : await firstSince(tenantId, before),
      };
    },
    /** At most `limit` entries behind one, oldest first; null: from the start of the span. */
    async page(
      tenantId: string,
      { fromId, toId }: AuditSpan,
      behindId: string | null,
      limit: number,
    ): Promise<readonly AuditRecord[]> {
      let query = entries(tenantId).selectAll().orderBy('id').limit(limit);
      if (behindId !== null) query = query.where('id', '>', behindId);
      else if (fromId !== null) query = query.where('id', '>=', fromId);
      if (toId !== null) query = query.where('id', '<', toId);
      // Evidence, compared with the head of the chain: not from a replica.
      return (await storage.scan(query)).map(toRecord);
    },
    /** Tenants that have a chain, or entries of one, sorted: one seek each. */
    async tenants(): Promise<readonly string[]> {
      const tenants = new Set<string>();
      for (const table of ['audit_heads', 'audit_entries'] as const)
        for (let last: string | null = null; ; ) {
          let query = storage.db.selectFrom(table).select('tenant_id').orderBy('tenant_id').limit(1);
          if (last !== null) query = query.where('tenant_id', '>', last);
          const row: { readonly tenant_id: string } | undefined = await query.executeTakeFirst();
          if (row === undefined) break;
          last = row.tenant_id;
          tenants.add(last);
        }
      return [...tenants].sort();
    },
    async head(tenantId: string): Promise<ChainHead> {
      const row = await storage.db
        .selectFrom('audit_heads')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .executeTakeFirst();
      return {
        entryCount: Number(row?.entry_count ?? 0),
        newestId: row?.newest_id ?? null,
        newestHash: row?.newest_hash ?? null,
      };
    },
  };
});

export type AuditReadingStore = StoreOf<typeof auditReadingStore>;
