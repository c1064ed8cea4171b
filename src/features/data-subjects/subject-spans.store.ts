import type { Kysely } from 'kysely';
import type { ExternalSpanRow } from '../../db/tables/external-spans.ts';
import type { Tables } from '../../db/tables.ts';
import { chunks } from './chunks.ts';
import type { SubjectIdentity } from './data-subject-resolver.ts';

export type WaitingSpanKey = Pick<ExternalSpanRow, 'trace_id' | 'span_id'>;

type Db = Kysely<Tables>;

const columnsOf = ({ userIds, ownerIds }: SubjectIdentity) =>
  [
    ['user_id', userIds],
    ['owner_id', ownerIds],
  ] as const;

/** Which spans of a person wait to become a run. */
export const findWaitingSpans = async (
  db: Db,
  tenantId: string,
  identity: SubjectIdentity,
): Promise<readonly WaitingSpanKey[]> => {
  const found = new Map<string, WaitingSpanKey>();
  for (const [column, ids] of columnsOf(identity))
    for (const some of chunks(ids)) {
      const keys = await db
        .selectFrom('external_spans')
        .select(['trace_id', 'span_id'])
        .where('tenant_id', '=', tenantId)
        .where('run_id', 'is', null)
        .where(column, 'in', some)
        .execute();
      for (const key of keys) found.set(`${key.trace_id}${key.span_id}`, key);
    }
  return [...found.values()];
};

/** Sealed rows of such spans, those that are left. */
export const waitingSpanRows = async (
  db: Db,
  tenantId: string,
  keys: readonly WaitingSpanKey[],
): Promise<readonly ExternalSpanRow[]> => {
  const rows: ExternalSpanRow[] = [];
  for (const [traceId, spans] of Map.groupBy(keys, ({ trace_id: id }) => id))
    rows.push(
      ...(await db
        .selectFrom('external_spans')
        .selectAll()
        .where('tenant_id', '=', tenantId)
        .where('trace_id', '=', traceId)
        .where('run_id', 'is', null)
        .where(
          'span_id',
          'in',
          spans.map(({ span_id: id }) => id),
        )
        .execute()),
    );
  return rows;
};

/** Takes away the spans of a person that are not a run yet, and whose those were that are. */
export const deleteSpans = async (db: Db, tenantId: string, identity: SubjectIdentity): Promise<void> => {
  for (const [column, ids] of columnsOf(identity))
    for (const some of chunks(ids)) {
      await db
        .deleteFrom('external_spans')
        .where('tenant_id', '=', tenantId)
        .where('run_id', 'is', null)
        .where(column, 'in', some)
        .execute();
      await db
        .updateTable('external_spans')
        .set({ [column]: null })
        .where('tenant_id', '=', tenantId)
        .where(column, 'in', some)
        .execute();
    }
};
