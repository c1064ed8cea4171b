import { isDecryptionFailure } from '../../core/content-cipher.ts';
import type { RootStorage } from '../storage.ts';
import { contentFinding, damaged, missing, unreadable } from './check.ts';
import { contentIndexStore } from './content-index.store.ts';
import { type NamedContent, namedContents } from './rows.ts';
import { sealedContent, sealOf } from './sealing.ts';
import { type ContentPlace, digestOf } from './store.ts';
import type { ContentView } from './views.ts';

export interface ContentMove {
  readonly storage: RootStorage;
  readonly target: ContentView;
  readonly sources: readonly ContentView[];
  /** What is left where it is, and not looked at. Default: nothing. */
  readonly leaves?: (named: NamedContent) => Promise<boolean>;
  /** Ends it between two contents; what was copied stays. */
  readonly signal?: AbortSignal;
  readonly progress?: (contents: number) => void;
}

export interface ContentMoveReport {
  /** That are at the target and were compared with their hash. */
  readonly contents: number;
  /** Of them, those that were copied now, and their bytes as they are stored. */
  readonly copied: number;
  readonly copiedBytes: number;
  /** One sentence for each that is nowhere whole. */
  readonly findings: readonly string[];
}

type Held = 'missing' | 'damaged' | 'unreadable' | 'whole';

/** What a place has of a content. */
const heldIn = async (
  { raw }: Pick<ContentView, 'raw'>,
  { rows: { cipher } }: Pick<RootStorage, 'rows'>,
  { place, sha256 }: Pick<NamedContent, 'place' | 'sha256'>,
): Promise<Held> => {
  try {
    const source = await sealedContent(raw, cipher).open(place);
    if (source === null) return 'missing';
    return (await digestOf(source)) === sha256 ? 'whole' : 'damaged';
  } catch (error) {
    if (isDecryptionFailure(error)) return 'unreadable';
    throw error;
  }
};

const removeFrom = async ({ storage }: ContentMove, view: ContentView, place: ContentPlace): Promise<void> => {
  const remove = await storage.transaction((stores) => view.raw.forget(stores, place));
  await remove();
};

/** Bytes as they lie: what is sealed stays sealed, under the key that it has. Null: the source has lost it meanwhile. */
const copyFrom = async (move: ContentMove, source: ContentView, named: NamedContent): Promise<number | null> => {
  const { storage, target } = move;
  const seal = await sealOf(source.raw, storage.rows.cipher, named.place);
  const file = await source.raw.open(named.place);
  if (file === null) return null;
  const draft = await target.raw.draft();
  try {
    await digestOf(file, (chunk) => draft.write(chunk));
    const placing = await draft.keep(named.place, seal?.keyId ?? null);
    const isNamed = await storage.transaction(async (stores) => {
      // Deleted meanwhile: nothing of it comes back.
      if (!(await stores(contentIndexStore).isNamed(named.place))) return false;
      await placing(stores);
      return true;
    });
    if (!isNamed) await removeFrom(move, target, named.place);
    return isNamed ? file.sizeBytes : null;
  } finally {
    await draft.discard();
  }
};

/** What the first source has that is whole; else what is wrong with the best that there is. */
const findSource = async ({ storage, sources }: ContentMove, named: NamedContent): Promise<ContentView | string> => {
  let fault = missing;
  for (const source of sources) {
    const held = await heldIn(source, storage, named);
    if (held === 'whole') return source;
    if (held !== 'missing') fault = held === 'damaged' ? damaged : unreadable;
  }
  return fault;
};

/** Bytes that were copied now; null: it is no more. What is wrong otherwise. */
const bring = async (move: ContentMove, named: NamedContent, before: Held): Promise<number | string | null> => {
  const { storage, target } = move;
  const source = await findSource(move, named);
  if (typeof source === 'string') {
    if (!(await storage.stores(contentIndexStore).isNamed(named.place))) return null;
    return before === 'unreadable' ? unreadable : before === 'damaged' ? damaged : source;
  }
  // Otherwise equal bytes that are not whole would be taken for what is to come.
  if (before !== 'missing') await removeFrom(move, target, named.place);
  const bytes = await copyFrom(move, source, named);
  if (bytes === null || (await heldIn(target, storage, named)) === 'whole') return bytes;
  await removeFrom(move, target, named.place);
  return `did not come whole to ${target.location}`;
};

/**
 * Copies everything that rows name to one place, and compares each with its hash where it has come to lie. What is there
 * already is compared and not copied again, so that it goes on wherever it was stopped. Nothing is removed from a source;
 * what is damaged or cannot be decrypted is left where it is, and told.
 */
export const moveContents = async (move: ContentMove): Promise<ContentMoveReport> => {
  const { storage, target, signal, leaves, progress = () => undefined } = move;
  const findings: string[] = [];
  const report = { contents: 0, copied: 0, copiedBytes: 0 };
  target.raw.assertWritable();
  for await (const named of namedContents(storage.db)) {
    if (signal?.aborted === true) break;
    if (leaves !== undefined && (await leaves(named))) continue;
    const before = await heldIn(target, storage, named);
    const brought = before === 'whole' ? 0 : await bring(move, named, before);
    if (brought === null) continue;
    if (typeof brought === 'string') {
      findings.push(contentFinding(named, brought));
      continue;
    }
    report.contents += 1;
    report.copied += before === 'whole' ? 0 : 1;
    report.copiedBytes += brought;
    progress(report.contents);
  }
  return { ...report, findings };
};

/** Removes from the sources what the target has; how many. For contents that `moveContents` has compared. */
export const removeMoved = async (move: ContentMove): Promise<number> => {
  const { storage, target, sources, signal, progress = () => undefined } = move;
  let removed = 0;
  for await (const { place } of namedContents(storage.db)) {
    if (signal?.aborted === true) break;
    const there = await target.raw.open(place);
    await there?.dispose();
    // Stored after it was copied: the next call copies it.
    if (there === null) continue;
    let isRemoved = false;
    for (const source of sources) {
      const stale = await source.raw.open(place);
      await stale?.dispose();
      if (stale === null) continue;
      await removeFrom(move, source, place);
      isRemoved = true;
    }
    if (isRemoved) removed += 1;
    progress(removed);
  }
  return removed;
};
