import type { Kysely } from 'kysely';
import { insertStatement, type Statement } from '../../src/db/statement.ts';
import type { RootStorage } from '../../src/db/storage.ts';
import type { Tables } from '../../src/db/tables.ts';

export const insertAgent = (db: Kysely<Tables>, name: string, tenant = 't'): Statement =>
  insertStatement(db, 'agents', () => ({ tenant_id: tenant, name, current_version: 1 }))();

export const agentNames = async (db: Kysely<Tables>): Promise<string[]> =>
  (await db.selectFrom('agents').select('name').orderBy('name').execute()).map((row) => row.name);

/** A closed run with a log of the given packs, each `[first, last]`. */
export const insertRun = async (
  storage: RootStorage,
  id: string,
  eventCount: number,
  packs: readonly (readonly [number, number])[],
  status = 'Completed',
): Promise<void> => {
  await storage.db
    .insertInto('runs')
    .values({
      id,
      tenant_id: 't',
      agent_name: 'a',
      kind: 'Agent',
      status,
      created_at: 1,
      is_streaming: 0,
      depth: 0,
      event_count: eventCount,
    } as never)
    .execute();
  for (const [first, last] of packs)
    await storage.db
      .insertInto('run_events')
      .values({ run_id: id, first_sequence: first, last_sequence: last, events: '[]' })
      .execute();
};
