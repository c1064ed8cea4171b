import type { SqlDialect } from '../../db/dialect.ts';

// As much as the watchdog lets stand, which only looks once a second: a sweep may write ten times as much by then, and
// at 64 MiB the next commit of anybody would move all of it.
const boundBytes = 8 * 1_048_576;

/** Waits until the write-ahead log is in the store file, when there is much of it: who writes most has to wait. */
export const moveLog = async (dialect: Pick<SqlDialect, 'walBacklogBytes' | 'checkpoint'>): Promise<void> => {
  if ((await dialect.walBacklogBytes()) >= boundBytes) await dialect.checkpoint('Passive');
};
