import { accessSync, constants, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { AcpError } from '../../contract/errors.ts';
import { privateFileMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import { classifySqlite } from './failure.ts';
import { foreignLock, lockFile } from './foreign-lock.ts';
import { type LockDatabase, openLockDatabase } from './open.ts';
import { openFailure, realStorePath } from './store-location.ts';

/** Who serves a store; members that could not be read are null. */
export interface StoreOwner {
  readonly pid: number | null;
  /** Null until the owner listens, and for a command that works on the file itself. */
  readonly url: string | null;
  /** RFC 3339. */
  readonly startedAt: string | null;
  /** It was asked to write nothing more, and does so until it ends. */
  readonly readOnly: boolean;
}

/** The right to be the only process that writes a store. The operating system takes it back when the process ends. */
export type OwnerLock = Awaited<ReturnType<typeof acquireOwnership>>;

const ownerFile = (path: string): string => `${path}.owner`;

const retryMs = 25;
// Another process that only asks who owns the store holds the lock for a moment: one refusal proves nothing.
const shortestWaitMs = 250;

const lockFailure = (path: string, error: unknown): AcpError =>
  foreignLock(path, error) ?? openFailure(lockFile(path), error, 'lock of the store', classifySqlite(error));

const openLock = (path: string): LockDatabase => {
  try {
    // On a file that this user may only read SQLite would grant a read lock, and two processes would own the store.
    if (existsSync(lockFile(path))) accessSync(lockFile(path), constants.R_OK | constants.W_OK);
    return openLockDatabase(lockFile(path));
  } catch (error) {
    throw lockFailure(path, error);
  }
};

const tryLock = (path: string, lock: LockDatabase): boolean => {
  try {
    return lock.tryLock();
  } catch (error) {
    lock.close();
    throw lockFailure(path, error);
  }
};

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Another user's process is alive as well.
    return systemCode(error) === 'EPERM';
  }
};

const unknownOwner: StoreOwner = { pid: null, url: null, startedAt: null, readOnly: false };

/** What the owner file says; null while it is missing. */
const readOwnerFile = (path: string): StoreOwner | null => {
  try {
    const owner = JSON.parse(readFileSync(ownerFile(path), 'utf8')) as Partial<StoreOwner>;
    const { pid = null, url = null, startedAt = null, readOnly = false } = owner;
    return { pid, url, startedAt, readOnly };
  } catch {
    // Missing, another user's, or not ours: the lock alone decides, this file only explains.
    return null;
  }
};

const isFull = (error: unknown): boolean => ['ENOSPC', 'EDQUOT'].includes(systemCode(error));

const writeOwnerFile = (path: string, owner: StoreOwner): void => {
  const draft = `${ownerFile(path)}.${process.pid}`;
  try {
    // What a killed process of the same number left behind has its own mode.
    rmSync(draft, { force: true });
    writeFileSync(draft, `${JSON.stringify(owner)}\n`, { flag: 'wx', mode: privateFileMode });
    // Renamed into place: whoever finds the lock taken reads a whole file.
    renameSync(draft, ownerFile(path));
  } catch (error) {
    rmSync(draft, { force: true });
    // The lock is held all the same, and this file only explains: a full disk keeps nobody from reading the store.
    if (!isFull(error)) throw error;
  }
};

const ownedBy = (path: string, owner: StoreOwner): AcpError => {
  const process = owner.pid === null ? 'another process' : `process ${owner.pid}`;
  const where = owner.url === null ? '' : ` (${owner.url})`;
  return new AcpError(
    'store-unavailable',
    `The store ${path} is owned by ${process}${where}; stop it, or use its URL.`,
  );
};

export interface OwnershipWait {
  /** How long another owner is waited for; a quarter of a second at least. */
  readonly waitMs: number;
  /**
   * A service waits for a command that works on the file for as long as that lives: it ends by itself, and what it
   * writes counts. Called once, with its process.
   */
  readonly onCommand?: (pid: number) => void;
  /** A command does not wait for a service that has an address: it asks the service. */
  readonly yieldsToService?: boolean;
  /** Ends the wait; its reason is thrown. */
  readonly signal?: AbortSignal;
}

const liveOwner = (path: string): (StoreOwner & { readonly pid: number }) | null => {
  const owner = readOwnerFile(path);
  const pid = owner?.pid ?? null;
  return owner !== null && pid !== null && isAlive(pid) ? { ...owner, pid } : null;
};

/** The process of an owner without an address: a command, or a service that does not listen yet. */
const commandOf = (path: string): number | null => {
  const owner = liveOwner(path);
  return owner === null || owner.url !== null ? null : owner.pid;
};

const isServed = (path: string): boolean => (liveOwner(path)?.url ?? null) !== null;

/** Null when another process keeps the lock. */
const lockWithin = async (
  path: string,
  { waitMs, onCommand, yieldsToService = false, signal }: OwnershipWait,
): Promise<LockDatabase | null> => {
  const lock = openLock(path);
  let deadline = performance.now() + Math.max(waitMs, shortestWaitMs);
  let command: number | null = null;
  try {
    while (!tryLock(path, lock)) {
      signal?.throwIfAborted();
      const earlier = command;
      command = onCommand === undefined ? null : commandOf(path);
      if (command !== null) {
        if (earlier === null) onCommand?.(command);
        // Its successor, should it have one, is waited for anew.
        deadline = performance.now() + Math.max(waitMs, shortestWaitMs);
      } else if (performance.now() >= deadline || (yieldsToService && isServed(path))) {
        lock.close();
        return null;
      }
      await pause(retryMs);
    }
  } catch (error) {
    lock.close();
    throw error;
  }
  return lock;
};

/**
 * Makes this process the owner of the store file, whose folder must exist.
 * Throws `store-unavailable`, naming the owner, when another one keeps it for longer than the wait.
 */
export const acquireOwnership = async (dbPath: string, wait: OwnershipWait) => {
  const path = realStorePath(dbPath);
  const lock = await lockWithin(path, wait);
  if (lock === null) throw ownedBy(path, readOwnerFile(path) ?? unknownOwner);
  let own: StoreOwner = { pid: process.pid, url: null, startedAt: new Date().toISOString(), readOnly: false };
  try {
    writeOwnerFile(path, own);
  } catch (error) {
    lock.close();
    throw openFailure(ownerFile(path), error, 'owner file of the store');
  }
  let held = true;
  return {
    /** Tells other processes where the owner listens. */
    announce(url: string): void {
      own = { ...own, url };
      if (held) writeOwnerFile(path, own);
    },
    /** Tells them that nothing is written any more. */
    announceReadOnly(): void {
      own = { ...own, readOnly: true };
      if (held) writeOwnerFile(path, own);
    },
    release(): void {
      if (!held) return;
      held = false;
      try {
        rmSync(ownerFile(path), { force: true });
      } catch {
        // On a file system that turned read-only it stays, and names a process that has ended.
      }
      // The lock file stays: removing it would let two processes hold locks on two files of one name.
      lock.close();
    },
  };
};

/** The process that owns the store now; null when nobody does. Makes no file. */
export const readOwner = async (dbPath: string): Promise<StoreOwner | null> => {
  const path = realStorePath(dbPath);
  if (!existsSync(lockFile(path))) return null;
  const deadline = performance.now() + shortestWaitMs;
  for (;;) {
    const lock = openLock(path);
    const free = tryLock(path, lock);
    lock.close();
    if (free) return null;
    // The file follows the lock by a moment; until then it may still name a process that was killed.
    const owner = readOwnerFile(path);
    const isCurrent = owner !== null && owner.pid !== null && isAlive(owner.pid);
    if (isCurrent || performance.now() >= deadline) return owner ?? unknownOwner;
    await pause(retryMs);
  }
};
