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

/** One entry in the caller's chain and, when it is about another tenant, the same in that tenant's. */
export const inBothChains = (caller: string, tenant: string, entry: Omit<AuditEntry, 'tenantId'>): AuditEntry[] =>
  [...new Set([caller, tenant])].map((tenantId) => ({ ...entry, tenantId }));

/** A compiled write of the store, opaque here. */
export interface AuditedWrite {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  /** The whole change fails when this write touches no row. */
  readonly mustChange?: boolean;
}

/** Who changed what, in a chain of hashes per tenant. */
export interface AuditTrail {
  /**
   * Fail-closed: the writes and their entries in one transaction, or neither. Throws what a write throws, and
   * `audit-unavailable` when the trail cannot be written. Without writes it is the entry that must stand before an
   * effect outside the store.
   */
  record(entries: AuditEntry | readonly AuditEntry[], writes: readonly AuditedWrite[]): Promise<void>;
  /** Best effort, after a change that stands: a failure goes to the log. Never rejects. */
  note(entry: AuditEntry): Promise<void>;
}
