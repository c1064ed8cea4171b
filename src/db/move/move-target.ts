import { AcpError } from '../../contract/errors.ts';
import { openPreview } from '../open-for-reading.ts';
import { type OpenOptions, openStorage } from '../open-storage.ts';
import type { RootStorage } from '../storage.ts';
import { storeName, storePlace } from '../store-place.ts';
import { beginRecord, fingerprintOf, unfinishedMove } from './move-record.ts';
import { keepOnServer, type MoveSource } from './move-source.ts';
import { movedTables } from './moved-tables.ts';
import { untyped } from './table-walk.ts';

const firstFilled = async ({ db }: RootStorage): Promise<string | null> => {
  for (const table of movedTables)
    if ((await untyped(db).selectFrom(table).selectAll().limit(1).execute()).length > 0) return table;
  return null;
};

/** Whether the target holds a part of this source already. Throws where it holds anything else. */
const isBegun = async (target: RootStorage, source: MoveSource, name: string): Promise<boolean> => {
  const move = await unfinishedMove(target);
  if (move === null) {
    const table = await firstFilled(target);
    if (table === null) return false;
    throw new AcpError('validation-failed', `The target ${name} is not empty: it has rows in ${table}.`);
  }
  if (move.fingerprint === (await fingerprintOf(source.storage))) return true;
  throw new AcpError(
    'validation-failed',
    `The target ${name} holds a part of another store, ${move.source}: finish that move, or take an empty target.`,
  );
};

export interface MoveTarget {
  readonly storage: RootStorage;
  /** Of the source: see `fingerprintOf`. */
  readonly fingerprint: string;
  /** An earlier call was broken off, and this one goes on with it. */
  readonly resumes: boolean;
  /** Throws once it cannot be excluded any more that somebody else has written to it. */
  assertKept(): void;
  close(): Promise<void>;
}

/** Makes the target where there is none, with the tables of this build, and marks it as half of a store. */
export const openMoveTarget = async (options: OpenOptions, source: MoveSource): Promise<MoveTarget> => {
  const kept = storePlace(options).provider === 'Postgres' ? await keepOnServer(options, []) : null;
  const opened = await openStorage({ ...options, autoApplyMigrations: true, isMoveTarget: true }).catch(
    async (error: unknown) => {
      await kept?.release(false);
      throw error;
    },
  );
  const close = async (): Promise<void> => {
    await opened.close();
    await kept?.release(false);
  };
  try {
    const { storage } = opened;
    const resumes = await isBegun(storage, source, storeName(options));
    const fingerprint = await fingerprintOf(source.storage);
    if (!resumes) {
      await beginRecord(storage, { source: source.name, fingerprint, startedAt: options.now() });
    }
    return { storage, fingerprint, resumes, assertKept: () => kept?.assertKept(), close };
  } catch (error) {
    await close();
    throw error;
  }
};

/** The same without changing anything: an empty store in memory stands for one that is not there yet. */
export const previewMoveTarget = async (
  options: OpenOptions,
  source: MoveSource,
): Promise<Omit<MoveTarget, 'fingerprint'>> => {
  const opened = await openPreview({ ...options, isMoveTarget: true });
  try {
    const isMade = opened.pending.length === 0;
    const { storage, close } = opened;
    const assertKept = (): void => undefined;
    return { storage, assertKept, close, resumes: isMade && (await isBegun(storage, source, storeName(options))) };
  } catch (error) {
    await opened.close();
    throw error;
  }
};
