import { openForReading, type ReadableStorage } from '../open-for-reading.ts';
import type { StoreOptions } from '../open-storage.ts';
import type { AskToHold } from '../postgres/store-hold.ts';
import { acquireOwnership } from '../sqlite/owner-lock.ts';
import { askForHold } from '../sqlite/write-hold.ts';
import { postgresOptions, storeName } from '../store-place.ts';
import { tableNames } from '../tables.ts';

/** The store that a move reads, and that nobody writes to until it is closed. */
export interface MoveSource extends ReadableStorage {
  /** Where it is, without credentials. */
  readonly name: string;
  /** Throws once it cannot be excluded any more that somebody has written to it. */
  assertKept(): void;
  /** `isMoved`: everything is at the target. */
  close(isMoved?: boolean): Promise<void>;
}

/** Who is about to end, such as a command, is waited for. */
const ownerWaitMs = 1000;

/**
 * How the source is kept as it is: `Alone`, nobody may serve it meanwhile; `Held`, whoever serves it is asked to answer
 * reads only; `Preview`, not at all.
 */
export type SourceUse = { readonly kind: 'Alone' | 'Preview' } | ({ readonly kind: 'Held' } & AskToHold);

interface Keeping {
  assertKept(): void;
  release(isMoved: boolean): Promise<void>;
}

const keepFile = async (path: string, { kind }: SourceUse): Promise<Keeping> => {
  const hold = kind === 'Held' ? await askForHold(path) : null;
  const kept = hold ?? (await acquireOwnership(path, { waitMs: ownerWaitMs }));
  return { assertKept: () => undefined, release: async () => kept.release() };
};

/** Has a store on a server to itself; `tables` take no writes of anybody. */
export const keepOnServer = async (
  options: StoreOptions,
  tables: readonly string[],
  ask: AskToHold | null = null,
): Promise<Keeping> => {
  const { holdStore } = await import('../postgres/store-hold.ts');
  const hold = await holdStore(postgresOptions(options), tables, ask);
  return { assertKept: hold.assertHeld, release: hold.release };
};

const keep = async (options: StoreOptions, path: string | null, use: SourceUse): Promise<Keeping | null> => {
  if (use.kind === 'Preview') return null;
  return path === null ? keepOnServer(options, tableNames, use.kind === 'Held' ? use : null) : keepFile(path, use);
};

/** Throws `store-unavailable` when there is no such store, and when a process serves it that may not be asked. */
export const openMoveSource = async (options: StoreOptions, use: SourceUse): Promise<MoveSource> => {
  const opened = await openForReading(options);
  try {
    const kept = await keep(options, opened.path, use);
    return {
      ...opened,
      name: storeName(options),
      assertKept: () => kept?.assertKept(),
      async close(isMoved = false) {
        await opened.close();
        await kept?.release(isMoved);
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
};
