/** A table, or the files of attachments, as a re-encryption found them. */
export interface ReencryptedTable {
  readonly table: string;
  readonly rows: number;
  /** With something in plain text, and nothing under a former key. */
  readonly plain: number;
  /** With something under a former key, and all of it readable. */
  readonly former: number;
  /** Written anew under the active key. */
  readonly rewritten: number;
  /** With something that cannot be read: its key is not configured, or it was changed. It stays as it is. */
  readonly unreadable: number;
  /** Of a run or a session that is gone: nobody reads them, and they stay as they are until the service removes them. */
  readonly orphaned: number;
}

/** A row that is not wholly under the active key. */
export interface CountedRow {
  readonly standing: 'Plain' | 'Former' | 'Unreadable' | 'Orphaned';
  /** Former keys that it is still under. */
  readonly keys: readonly string[];
  readonly written: boolean;
}

const members = { Plain: 'plain', Former: 'former', Unreadable: 'unreadable', Orphaned: 'orphaned' } as const;

export type ReencryptTally = ReturnType<typeof createReencryptTally>;

/** Counts one table; what is left under former keys goes into a list of all tables. */
export const createReencryptTally = (
  table: string,
  underKeys: Map<string, number>,
  progress: (table: string, rows: number) => void,
) => {
  const counts = { rows: 0, plain: 0, former: 0, rewritten: 0, unreadable: 0, orphaned: 0 };
  return {
    /** Rows of which nothing has to be written. */
    current(rows: number): void {
      counts.rows += rows;
      progress(table, counts.rows);
    },
    add({ standing, keys, written }: CountedRow): void {
      counts.rows += 1;
      counts[members[standing]] += 1;
      if (written) counts.rewritten += 1;
      for (const key of keys) underKeys.set(key, (underKeys.get(key) ?? 0) + 1);
      progress(table, counts.rows);
    },
    result: (): ReencryptedTable => ({ table, ...counts }),
  };
};
