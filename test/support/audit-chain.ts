import assert from 'node:assert/strict';
import { type ChainedFields, entryHash } from '../../src/features/audit/chain.rules.ts';

interface Row {
  readonly id: string;
  readonly tenant_id: string;
  readonly actor: string | null;
  readonly action: string;
  readonly entity: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly created_at: number;
  readonly previous_hash: string | null;
  readonly hash: string;
}

interface Head {
  readonly tenant_id: string;
  readonly entry_count: number;
  readonly newest_id: string | null;
  readonly newest_hash: string | null;
}

interface Rows {
  rows<T = Record<string, unknown>>(sql: string, ...parameters: unknown[]): T[];
}

export interface TrailEntry {
  readonly actor: string | null;
  readonly action: string;
  readonly entity: string;
  // biome-ignore lint/suspicious/noExplicitAny: an entity of any feature; tests look at the members they mean.
  readonly before: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  readonly after: any;
}

const fieldsOf = (row: Row): ChainedFields => ({
  id: row.id,
  tenantId: row.tenant_id,
  actor: row.actor,
  action: row.action,
  entity: row.entity,
  before: row.before,
  after: row.after,
  createdAt: new Date(row.created_at).toISOString(),
  previousHash: row.previous_hash,
});

/** The entries of a tenant, oldest first, after their whole chain was checked against its head. */
export const trail = ({ rows }: Rows, tenantId = 'default'): TrailEntry[] => {
  const entries = rows<Row>('select * from service_audit_entries where tenant_id = ? order by id', tenantId);
  let previous: Row | undefined;
  for (const entry of entries) {
    assert.equal(entry.previous_hash, previous?.hash ?? null, 'every entry names the hash of the one before');
    assert.equal(entry.hash, entryHash(fieldsOf(entry)), 'the hash is that of the content');
    assert.ok(entry.created_at >= (previous?.created_at ?? 0), 'time does not run backwards');
    previous = entry;
  }
  const [head] = rows<Head>('select * from service_audit_heads where tenant_id = ?', tenantId);
  assert.equal(head?.entry_count ?? 0, entries.length);
  assert.equal(head?.newest_id ?? null, previous?.id ?? null);
  assert.equal(head?.newest_hash ?? null, previous?.hash ?? null);
  const parsed = (text: string | null): unknown => (text === null ? null : JSON.parse(text));
  return entries.map(({ actor, action, entity, before, after }) => ({
    actor,
    action,
    entity,
    before: parsed(before),
    after: parsed(after),
  }));
};
