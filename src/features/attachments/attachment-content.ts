import { type ContentStore, contentPlace, hashOfPlace } from '../../db/content/store.ts';
import type { AttachmentStore } from './attachments.store.ts';

/** Removes bytes that no row names any more. Rows go first, so that nothing that has a row is ever without bytes. */
export const createContentCleanup = (
  store: Pick<AttachmentStore, 'isReferenced' | 'tenantsOf'>,
  content: ContentStore,
) => ({
  async release(tenantId: string, hashes: Iterable<string>): Promise<void> {
    for (const sha256 of new Set(hashes)) {
      const place = contentPlace(tenantId, sha256);
      await content.exclusive(place, async () => {
        if (!(await store.isReferenced(tenantId, sha256))) await content.remove(place);
      });
    }
  },
  /**
   * Looks at every content: for the start, after a process that died between a row and its bytes. Returns how many went;
   * the signal ends it early.
   */
  async sweep(signal: AbortSignal): Promise<number> {
    let removed = 0;
    for await (const place of content.places()) {
      if (signal.aborted) break;
      await content.exclusive(place, async () => {
        const sha256 = hashOfPlace(place);
        const tenants = await store.tenantsOf(sha256);
        if (tenants.some((tenantId) => contentPlace(tenantId, sha256) === place)) return;
        await content.remove(place);
        removed += 1;
      });
    }
    return removed;
  },
});

export type ContentCleanup = ReturnType<typeof createContentCleanup>;
