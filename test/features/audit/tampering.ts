// Somebody who can write to the database changes the trail: the chain has to show what no door of the service does.
import type { RootStorage } from '../../../src/db/storage.ts';
import type { AuditEntryRow } from '../../../src/db/tables.ts';
import type { TestApp } from '../../support/app.ts';

/** What somebody does to the trail who can write to the database: no door of the service does that. */
export interface Tampering {
  change(id: string, values: Partial<AuditEntryRow>): Promise<unknown>;
  remove(...ids: readonly string[]): Promise<unknown>;
  removeAll(): Promise<unknown>;
  /** Of the heads, which know the end of each chain. */
  forgetEnds(): Promise<unknown>;
}

export const tampering = (app: TestApp): Tampering => {
  const { db }: RootStorage = app.store.open();
  return {
    change: (id, values) => db.updateTable('audit_entries').set(values).where('id', '=', id).execute(),
    remove: (...ids) => db.deleteFrom('audit_entries').where('id', 'in', ids).execute(),
    removeAll: () => db.deleteFrom('audit_entries').execute(),
    forgetEnds: () => db.deleteFrom('audit_heads').execute(),
  };
};

/** The ids of the default tenant's entries, oldest first. */
export const idsOf = async (app: TestApp): Promise<string[]> =>
  (await app.client.audit.list({ query: {} })).body.map(({ id }) => id).toReversed();
