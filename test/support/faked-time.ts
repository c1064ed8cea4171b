import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StartOptions } from '../e2e/support.ts';
import { program } from './program.ts';

const libraryFolder = '/usr/lib';

/** libfaketime as Debian's package `faketime` puts it: below a folder of the machine's architecture. */
const findLibrary = (): string | null => {
  if (!existsSync(libraryFolder)) return null;
  const found = readdirSync(libraryFolder)
    .map((name) => join(libraryFolder, name, 'faketime', 'libfaketime.so.1'))
    .find((file) => existsSync(file));
  return found ?? null;
};

export interface FakedTime {
  /** How the process is started whose clock this is. */
  readonly options: StartOptions;
  /** How many seconds its clock is ahead of that of the machine from now on. */
  set(seconds: number): void;
}

const variables = (library: string, file: string): string[] => [
  `LD_PRELOAD=${library}`,
  `FAKETIME_TIMESTAMP_FILE=${file}`,
  // Read at each look at the clock, as one that is set counts at once.
  'FAKETIME_NO_CACHE=1',
  // Whoever sets a clock does not set what only goes forward.
  'FAKETIME_DONT_FAKE_MONOTONIC=1',
];

/** Null: the clock of a process can be set here. */
export const whyNoFakedTime = (): string | null => {
  const library = findLibrary();
  if (library === null) return 'libfaketime (Debian package faketime) is not installed';
  const asked = spawnSync('env', [`LD_PRELOAD=${library}`, 'FAKETIME=+3600', process.execPath, '-p', 'Date.now()']);
  return Number(asked.stdout) - Date.now() > 3_000_000 ? null : 'libfaketime does not reach this Node';
};

/** A clock that a process goes by, as it is set; the file in this folder says how. */
export const fakedTime = (folder: string): FakedTime => {
  const file = join(folder, 'clock');
  const set = (seconds: number): void => writeFileSync(file, seconds < 0 ? `${seconds}` : `+${seconds}`);
  set(0);
  return { options: { program: ['env', ...variables(findLibrary() ?? '', file), ...program] }, set };
};
