import { defineStore } from '../../define-store.ts';
import type { KeptIn } from './space.ts';

/** Which folder and which bucket are those of this store. */
export const placeMarkerStore = defineStore(({ db }) => ({
  /** The marker of a place; the one that is offered, if it has none yet. */
  async markerOf(keptIn: KeptIn, offered: string): Promise<string> {
    await db
      .insertInto('attachment_places')
      .values({ kept_in: keptIn, marker: offered })
      .onConflict((conflict) => conflict.column('kept_in').doNothing())
      .execute();
    const { marker } = await db
      .selectFrom('attachment_places')
      .select('marker')
      .where('kept_in', '=', keptIn)
      .executeTakeFirstOrThrow();
    return marker;
  },
  async hasContents(keptIn: KeptIn): Promise<boolean> {
    const row = await db
      .selectFrom('attachment_contents')
      .select('id')
      .where('kept_in', '=', keptIn)
      .where('place', 'is not', null)
      .limit(1)
      .executeTakeFirst();
    return row !== undefined;
  },
}));
