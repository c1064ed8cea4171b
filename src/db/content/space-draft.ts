import { AcpError } from '../../contract/errors.ts';
import { type ContentIndex, contentIndexStore } from './content-index.store.ts';
import type { ContentSpace } from './spaces/space.ts';
import { type AmendableDraft, ContentGone } from './store.ts';

interface DraftPorts {
  readonly index: ContentIndex;
  readonly now: () => number;
  /** Names the bytes; nothing else has it, or ever had. */
  readonly id: string;
}

// So often that a draft under way is never taken for an abandoned one.
const touchMs = 60_000;

/** A draft in a place that processes share: its row is there before its first byte. */
export const createSpaceDraft = async (
  space: ContentSpace,
  { index, now, id }: DraftPorts,
): Promise<AmendableDraft> => {
  space.assertWritable();
  const { keptIn } = space;
  let touchedAt = now();
  await index.begin(id, keptIn, touchedAt);
  const draft = await space.draft(id);
  let sizeBytes = 0;
  let isFinished = false;

  const touch = async (): Promise<void> => {
    if (now() - touchedAt < touchMs) return;
    touchedAt = now();
    await index.touch(id, touchedAt);
  };
  return {
    async write(bytes) {
      await draft.write(bytes);
      sizeBytes += bytes.byteLength;
      await touch();
    },
    amend: draft.amend,
    read: draft.read,
    async keep(place, keyId = null) {
      const present = (await index.copiesAt(place)).find((copy) => copy.kept_in === keptIn && copy.key_id === keyId);
      // Equal bytes are sealed with other keys each time, to the same length.
      if (present?.stored_bytes === sizeBytes && (await space.has(present.id, sizeBytes)))
        return async (stores) => {
          const copies = await stores(contentIndexStore).copiesAt(place);
          if (!copies.some((copy) => copy.id === present.id)) throw new ContentGone(place);
        };
      if (!isFinished) {
        space.assertWritable();
        await draft.finish();
        isFinished = true;
      }
      return async (stores) => {
        if (!(await stores(contentIndexStore).publish({ id, keptIn, place, keyId, storedBytes: sizeBytes }, now())))
          throw new AcpError('store-unavailable', 'The file took too long to come, and what had come was removed.');
      };
    },
    async discard() {
      await draft.close();
      try {
        // Not what was given a place: whether it was, only the store can say.
        if (!(await index.release(id, Number.MAX_SAFE_INTEGER))) return;
        await space.remove(id);
        await index.end(id);
      } catch {
        // Nobody gives it a place any more: it goes with what is abandoned.
      }
    },
  };
};
