import { AcpError } from '../contract/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { StoreFailure } from './dialect.ts';

/** What passes by itself, or is not about the store. */
type Passing = 'unique-violation' | 'unstorable-text' | 'conflict' | 'slow' | 'busy' | 'in-doubt' | null;

/** Why writes fail. A lock of another program passes by itself and is none. */
export type StoreTrouble = Exclude<StoreFailure, Passing> | 'moved';

/** Whether the store takes what is written, as the last writes have shown. */
export type StoreCondition = ReturnType<typeof createStoreCondition>;

/** What the log and callers are told of it. */
export type ConditionWords = Readonly<Record<StoreTrouble | 'works' | 'returned' | 'refusal', string>>;

const passing: ReadonlySet<StoreFailure> = new Set<Passing>([
  'unique-violation',
  'unstorable-text',
  'conflict',
  'slow',
  'busy',
  // Whoever has lost the connection has told so.
  'in-doubt',
  null,
]);
const isPassing = (failure: StoreFailure): failure is Passing => passing.has(failure);

const storeWords: ConditionWords = {
  full: 'The disk of the store is full: nothing is stored until there is room',
  'read-only': 'The store cannot be written: its file or its file system is read-only',
  corrupt: 'The store file is damaged: stop the service and run `acp db check`',
  unavailable: 'The store cannot be written: its file system reports errors',
  works: 'The store takes what is written again',
  moved: 'A file of the store was moved, deleted or replaced: nothing is written until it is back at its path',
  returned: 'The files of the store are where they were: it takes what is written again',
  refusal: 'The file of the store was moved, deleted or replaced; nothing is written until it is back.',
};

const heldWords = 'The store is being moved: this process answers reads only, until it is started again.';

// A disk that is nearly full takes one write and refuses the next: each change is told, but not each second.
const repeatedAfterMs = 60_000;
const retryAfterMs = 5000;

export const createStoreCondition = (
  path: string | null,
  classify: (error: unknown) => StoreFailure,
  log: Pick<Logger, 'error' | 'warn'>,
  words: ConditionWords = storeWords,
) => {
  let trouble: StoreTrouble | null = null;
  let missing: string | null = null;
  let refusal: AcpError | null = null;
  let held: AcpError | null = null;
  let told: { readonly trouble: StoreTrouble; readonly at: number } | null = null;
  let isTold = false;

  const enter = (next: Exclude<StoreTrouble, 'moved'>, error: unknown): void => {
    trouble = next;
    isTold = told === null || told.trouble !== next || performance.now() - told.at >= repeatedAfterMs;
    if (!isTold) return;
    told = { trouble: next, at: performance.now() };
    log.error({ path, error }, words[next]);
  };

  const failed = (error: unknown): void => {
    const failure = classify(error);
    if (isPassing(failure) || failure === trouble) return;
    enter(failure, error);
  };

  return {
    /** Null: writes succeed, as far as anybody has tried. */
    get trouble(): StoreTrouble | null {
      return missing === null ? trouble : 'moved';
    },
    /** What every write is answered with while the file is not the one that was opened, or is held; null: writes are tried. */
    get refusal(): AcpError | null {
      return held ?? refusal;
    },
    /** Nothing is written from here on: the rows are copied elsewhere, and what came later would be missing there. */
    hold(): void {
      held = new AcpError('store-unavailable', heldWords);
      log.warn({ path }, heldWords);
    },
    /** A statement failed. */
    failed,
    /** The work, whose failure says how the place does. */
    async noted<T>(work: () => Promise<T>): Promise<T> {
      try {
        return await work();
      } catch (error) {
        failed(error);
        throw error;
      }
    },
    /** A write of the watch went through. */
    works(): void {
      if (trouble === null) return;
      trouble = null;
      if (isTold) log.warn({ path }, words.works);
    },
    /** The path whose file is not the one that was opened; null: all are. */
    looked(now: string | null): void {
      if (now === missing) return;
      missing = now;
      if (now === null) {
        refusal = null;
        log.warn({ path }, words.returned);
        return;
      }
      refusal = new AcpError('store-unavailable', words.refusal, { details: { retryAfterMs } });
      log.error({ path: now }, words.moved);
    },
  };
};
