import { type Kysely, sql } from 'kysely';
import { hasTable } from '../migrate.ts';
import type { RootStorage } from '../storage.ts';
import type { Tables } from '../tables.ts';
import { type ContentPlace, contentPlace, hashOfPlace } from './store.ts';

/** Bytes that a store file says are kept beside it. */
export interface NamedContent {
  readonly tenantId: string;
  readonly sha256: string;
  readonly place: ContentPlace;
  /** The oldest of the attachments that have these bytes. */
  readonly attachmentId: string;
  readonly attachments: number;
}

// Few enough that a page is read in a moment, while a server writes the same file.
const pageSize = 1000;

/** False for a store from before there were attachments. */
export const hasAttachments = (storage: RootStorage): Promise<boolean> => hasTable(storage, 'attachments');

/** Each content once, however many rows name it, in the order of hash and tenant. */
export const namedContents = async function* (db: Kysely<Tables>): AsyncGenerator<NamedContent, void> {
  for (let last: NamedContent | null = null; ; ) {
    let page = db
      .selectFrom('attachments')
      .select(['tenant_id', 'sha256'])
      .select([sql<string>`min(id)`.as('id'), sql<number>`count(*)`.as('count')])
      .groupBy(['sha256', 'tenant_id'])
      .orderBy('sha256')
      .orderBy('tenant_id')
      .limit(pageSize);
    if (last !== null) {
      const { sha256, tenantId } = last;
      page = page.where((eb) =>
        eb.or([eb('sha256', '>', sha256), eb.and([eb('sha256', '=', sha256), eb('tenant_id', '>', tenantId)])]),
      );
    }
    const rows = await page.execute();
    for (const { tenant_id: tenantId, sha256, id, count } of rows) {
      last = { tenantId, sha256, place: contentPlace(tenantId, sha256), attachmentId: id, attachments: Number(count) };
      yield last;
    }
    if (rows.length < pageSize) return;
  }
};

/** Whether any row names what is at a place: the folder of a tenant does not tell the tenant. */
export const isNamed = async (db: Kysely<Tables>, place: ContentPlace): Promise<boolean> => {
  const sha256 = hashOfPlace(place);
  const tenants = await db
    .selectFrom('attachments')
    .select('tenant_id')
    .distinct()
    .where('sha256', '=', sha256)
    .execute();
  return tenants.some((row) => contentPlace(row.tenant_id, sha256) === place);
};

/** Removes the rows of a content. */
export const forgetContent = async (db: Kysely<Tables>, { tenantId, sha256 }: NamedContent): Promise<void> => {
  await db.deleteFrom('attachments').where('tenant_id', '=', tenantId).where('sha256', '=', sha256).execute();
};
