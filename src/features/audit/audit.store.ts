import type { Kysely } from 'kysely';
import { isoTime } from '../../core/iso-time.ts';
import { defineStore } from '../../db/define-store.ts';
import { storedText } from '../../db/stored-text.ts';
import type { AuditHeadRow, Tables } from '../../db/tables.ts';
import { entryHash, idAfter } from './chain.rules.ts';
import { maskedJson } from './masking.rules.ts';

/** What an entry of the audit trail tells; the trail itself adds id, time and the links of the chain. */
export interface AuditEntry {
  readonly tenantId: string;
  /** `principal.actor` of the caller, or `system:{handler}` for background work; null: nobody in particular. */
  readonly actor: string | null;
  /** Such as `agent.update`. */
  readonly action: string;
  /** `<type>:<id>`. */
  readonly entity: string;
  /** The entity as its GET answers it, before and after; null where there is none. Secrets are masked by the trail. */
  readonly before: object | null;
  readonly after: object | null;
}

interface AuditClock {
  /** Epoch milliseconds. */
  readonly now: () => number;
  readonly newId: () => string;
}

/**
 * Counts the entries of a tenant up and gives the head as it was. The update is the lock: a second writer of the same
 * tenant waits here for the first, so that entries follow one another across instances too.
 */
const lockHead = async (db: Kysely<Tables>, tenantId: string, added: number): Promise<AuditHeadRow> => {
  await db
    .insertInto('audit_heads')
    .values({ tenant_id: tenantId, entry_count: 0, newest_id: null, newest_hash: null, newest_at: 0 })
    .onConflict((conflict) => conflict.column('tenant_id').doNothing())
    .execute();
  return db
    .updateTable('audit_heads')
    .set((eb) => ({ entry_count: eb('entry_count', '+', added) }))
    .where('tenant_id', '=', tenantId)
    .returningAll()
    .executeTakeFirstOrThrow();
};

const heldText = (text: string): string => storedText(text).toWellFormed();

/** Appends entries of one tenant to its chain, inside a transaction. */
const appendTo = async (
  db: Kysely<Tables>,
  tenantId: string,
  entries: readonly AuditEntry[],
  { now, newId }: AuditClock,
): Promise<void> => {
  const head = await lockHead(db, tenantId, entries.length);
  let newest = { id: head.newest_id, hash: head.newest_hash, at: head.newest_at };
  for (const { actor, action, entity, before, after } of entries) {
    const id = idAfter(newest.id, newId());
    // A clock that was set back repeats the time of the entry before.
    const at = Math.max(now(), newest.at);
    // Hashed as the store holds it, or the check of the chain would find it changed.
    const named = { actor: actor === null ? null : heldText(actor), action, entity: heldText(entity) };
    const fields = { id, tenantId, ...named, before: maskedJson(before), after: maskedJson(after) };
    const createdAt = isoTime(at);
    const hash = entryHash({ ...fields, createdAt, previousHash: newest.hash });
    await db
      .insertInto('audit_entries')
      .values({
        tenant_id: tenantId,
        id,
        ...named,
        before: fields.before,
        after: fields.after,
        created_at: at,
        previous_hash: newest.hash,
        hash,
      })
      .execute();
    newest = { id, hash, at };
  }
  await db
    .updateTable('audit_heads')
    .set({ newest_id: newest.id, newest_hash: newest.hash, newest_at: newest.at })
    .where('tenant_id', '=', tenantId)
    .execute();
};

/** The chains, as they are written. */
export const auditStore = defineStore((storage) => ({
  /** Appends each entry to the chain of its tenant. */
  append: (entries: readonly AuditEntry[], clock: AuditClock): Promise<void> =>
    storage.atomic(async (db) => {
      // Heads are locked in one order everywhere, so that two writers never wait for each other.
      const byTenant = Map.groupBy(entries, ({ tenantId }) => tenantId);
      for (const tenantId of [...byTenant.keys()].sort())
        await appendTo(db, tenantId, byTenant.get(tenantId) ?? [], clock);
    }),
}));
