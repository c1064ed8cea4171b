import type { AcpError } from '../../contract/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { startStoreWatch } from '../sqlite/store-watch.ts';
import { type ConditionWords, createStoreCondition } from '../store-condition.ts';
import type { UnitOfWork } from '../unit-of-work.ts';
import { classifyFile } from './file-failure.ts';
import { contentFiles } from './files.ts';
import type { AmendableDraft, ContentPlace } from './store.ts';

const words: ConditionWords = {
  full: 'The disk of the attachments is full: none is stored until there is room',
  'read-only': 'The folder of the attachments cannot be written: it is read-only, or not open to this user',
  corrupt: 'The folder of the attachments is damaged',
  unavailable: 'The folder of the attachments cannot be written: its file system reports errors',
  works: 'The folder of the attachments takes what is written again',
  moved:
    'The folder of the attachments was moved, deleted or replaced: nothing is written there until it is back at its path',
  returned: 'The folder of the attachments is where it was: it takes what is written again',
  refusal: 'The folder of the attachments was moved, deleted or replaced; none is stored or removed until it is back.',
};

const probeBytes = 4096;

/**
 * Contents of a store that is served: their folder is watched as the store's files are.
 * `storeRefusal`: what writes of the store are answered with after a look at its files; null: they are tried.
 */
export const watchContents = (
  folder: string,
  storeRefusal: () => AcpError | null,
  log: Pick<Logger, 'error' | 'warn'>,
) => {
  const condition = createStoreCondition(folder, classifyFile, log, words);
  const { noted } = condition;
  const files = contentFiles(folder, () => {
    // First: below a folder that is gone as a whole nothing is made anew either.
    const refused = storeRefusal();
    if (refused !== null) throw refused;
    watch.look();
    if (condition.refusal !== null) throw condition.refusal;
  });
  const probeWrite = async (): Promise<void> => {
    const draft = await files.draft();
    try {
      await draft.write(Buffer.alloc(probeBytes));
    } finally {
      await draft.discard();
    }
  };
  const watch = startStoreWatch([folder], { probeWrite }, condition, log);

  const notedDraft = (draft: AmendableDraft): AmendableDraft => ({
    ...draft,
    write: (bytes) => noted(() => draft.write(bytes)),
    amend: (offset, bytes) => noted(() => draft.amend(offset, bytes)),
    keep: (place) => noted(() => draft.keep(place)),
  });

  return {
    files: {
      ...files,
      draft: () => noted(async () => notedDraft(await files.draft())),
      forget: async (_stores: UnitOfWork, place: ContentPlace) => () => noted(() => files.remove(place)),
      async removeDrafts() {
        watch.look();
        // Whatever stands there now is nobody's drafts.
        if (condition.refusal === null) await files.removeDrafts();
      },
    },
    /** Why no contents are written now, after a look at the folder; null: they are. */
    trouble() {
      watch.look();
      return condition.trouble;
    },
    stop: () => watch.stop(),
  };
};
