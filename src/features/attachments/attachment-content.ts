import { type ContentStore, contentPlace } from '../../db/content/store.ts';

/** Removes bytes that no row names any more. Rows go first, so that nothing that has a row is ever without bytes. */
export const createContentCleanup = (content: Pick<ContentStore, 'removeUnnamed'>) => ({
  async release(tenantId: string, hashes: Iterable<string>): Promise<void> {
    for (const sha256 of new Set(hashes)) await content.removeUnnamed(contentPlace(tenantId, sha256));
  },
});

export type ContentCleanup = ReturnType<typeof createContentCleanup>;
