import { statSync } from 'node:fs';

/** Whether what stands at some paths is still what stood there first. */
export interface FileIdentity {
  /** Remembers what is there by now, and returns the first path at which something else is, or nothing; null: none. */
  look(): string | null;
}

/** Device and inode, which stay with a file for as long as it exists; null: nothing can be seen there. */
const identityAt = (path: string): string | null => {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    // Missing, or below a folder that this user may not enter any more: it is not to be had at its path.
    return null;
  }
};

export const createFileIdentity = (paths: readonly string[]): FileIdentity => {
  const first = new Map<string, string>();
  return {
    look() {
      for (const path of paths) {
        const now = identityAt(path);
        const known = first.get(path);
        if (known === undefined) {
          if (now !== null) first.set(path, now);
        } else if (known !== now) return path;
      }
      return null;
    },
  };
};
