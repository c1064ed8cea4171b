import { randomUUID } from 'node:crypto';
import { AcpError } from '../../contract/errors.ts';
import type { RootStorage } from '../storage.ts';
import type { AttachmentContentRow } from '../tables/contents.ts';
import { contentIndexStore } from './content-index.store.ts';
import { createSpaceDraft } from './space-draft.ts';
import type { ContentSpace, KeptIn } from './spaces/space.ts';
import { type ContentPlace, type ContentSource, type RawContents, wholeOf } from './store.ts';

export interface ContentPlan {
  readonly storage: Pick<RootStorage, 'stores'>;
  /** The folder beside the file of a store that one process owns; null: there is none. */
  readonly home: RawContents | null;
  /** Each kind once. */
  readonly spaces: readonly ContentSpace[];
  /** Where what comes is kept. */
  readonly preferred: KeptIn | 'Home';
  readonly now: () => number;
  /** True: what lies in other kinds of place is not looked for. */
  readonly alone?: boolean;
  /** Names what comes, each time with another UUID. Default: at random. */
  readonly newId?: () => string;
}

// Rows of one read.
const pageSize = 500;

const notConfigured = (keptIn: string, place: ContentPlace): AcpError =>
  new AcpError('store-unavailable', 'The contents of the attachment cannot be reached now.', {
    cause: new Error(`${place} is kept in ${keptIn}, which Service:Attachments does not configure`),
  });

/** Contents in places of several kinds: what comes goes to one, what is there is read wherever it lies. */
export const placedContents = ({
  storage,
  home,
  spaces,
  preferred,
  now,
  alone = false,
  newId = randomUUID,
}: ContentPlan): RawContents => {
  const index = storage.stores(contentIndexStore);
  const byName = new Map(spaces.map((space) => [space.keptIn as string, space]));
  const names = spaces.map(({ keptIn }) => keptIn);

  const openCopies = async (
    place: ContentPlace,
    copies: readonly AttachmentContentRow[],
  ): Promise<ContentSource | null> => {
    let failure: unknown = null;
    const first = copies.filter(({ kept_in }) => kept_in === preferred);
    for (const copy of [...first, ...copies.filter((other) => !first.includes(other))]) {
      try {
        const space = byName.get(copy.kept_in);
        if (space === undefined) throw notConfigured(copy.kept_in, place);
        const source = await space.open(copy.id);
        if (source !== null) return source;
      } catch (error) {
        // Another copy may be there to read.
        failure ??= error;
      }
    }
    if (failure !== null) throw failure;
    return null;
  };
  const copiesAt = async (place: ContentPlace): Promise<readonly AttachmentContentRow[]> => {
    const copies = await index.copiesAt(place);
    return alone ? copies.filter(({ kept_in }) => byName.has(kept_in)) : copies;
  };
  const openPlaced = async (place: ContentPlace): Promise<ContentSource | null> => {
    const copies = await copiesAt(place);
    const source = await openCopies(place, copies);
    if (source !== null || copies.length === 0) return source;
    // Replaced between the two looks, or lost.
    return openCopies(place, await copiesAt(place));
  };
  const open = async (place: ContentPlace): Promise<ContentSource | null> => {
    if (home === null) return openPlaced(place);
    if (preferred === 'Home') return (await home.open(place)) ?? openPlaced(place);
    // What is not where it would go now has not been moved yet.
    return (await openPlaced(place)) ?? home.open(place);
  };
  const removeBytes = async ({ id, kept_in }: Pick<AttachmentContentRow, 'id' | 'kept_in'>): Promise<void> => {
    await byName.get(kept_in)?.remove(id);
    await index.end(id);
  };
  const preferredSpace = preferred === 'Home' ? null : (byName.get(preferred) ?? null);
  if (preferred !== 'Home' && preferredSpace === null) throw new Error(`There is no place of the kind ${preferred}.`);
  if (preferred === 'Home' && home === null) throw new Error('There is no folder beside the store.');

  return {
    assertWritable() {
      home?.assertWritable();
      for (const space of spaces) space.assertWritable();
    },
    draft: () => {
      if (preferredSpace !== null) return createSpaceDraft(preferredSpace, { index, now, id: newId() });
      if (home === null) throw new Error('There is no folder beside the store.');
      return home.draft();
    },
    open,
    async read(place) {
      if (home !== null && preferred === 'Home') {
        const bytes = await home.read(place);
        if (bytes !== null) return bytes;
      }
      const source = await open(place);
      return source === null ? null : wholeOf(source);
    },
    async forget(stores, place) {
      const released = await stores(contentIndexStore).forget(place, names);
      const removeFile = await home?.forget(stores, place);
      return async () => {
        for (const content of released) await removeBytes(content);
        await removeFile?.();
      };
    },
    async *places() {
      if (home !== null) yield* home.places();
      for (let last: string | null = null; ; ) {
        const page: readonly AttachmentContentRow[] = await index.placed(names, last, pageSize);
        for (const { place } of page) {
          if (place === null || place === last) continue;
          last = place;
          yield place as ContentPlace;
        }
        if (page.length < pageSize) return;
      }
    },
    removeDrafts: async () => home?.removeDrafts(),
    async removeLoose(untouchedSince, signal) {
      let removed = 0;
      for (;;) {
        const page = await index.loose(names, untouchedSince, pageSize);
        for (const content of page) {
          if (signal?.aborted === true) return removed;
          // Whoever was at it until now, is not from here on.
          if (!(await index.release(content.id, untouchedSince))) continue;
          await removeBytes(content);
          removed += 1;
        }
        if (page.length < pageSize) return removed;
      }
    },
  };
};
