import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

/** A disk of its own, small enough to be filled. */
export interface SmallDisk {
  readonly folder: string;
  /** Takes every byte that is left. */
  fill(): void;
  free(): void;
  /** While nothing on it is open for writing. */
  setReadonly(isReadonly: boolean): void;
  remove(): void;
}

/** Nothing stays mounted when a process ends before its hooks, as one does that only lists its tests. */
const unmountedAtExit = (folder: string): (() => void) => {
  const undo = () => void spawnSync('umount', [folder]);
  process.once('exit', undo);
  return () => void process.off('exit', undo);
};

/** Null where this user may not mount: nothing else gives a real full disk without a risk to the machine. */
export const mountDisk = (sizeMiB: number): SmallDisk | null => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMiB}m`, 'tmpfs', folder]);
  if (mounted.status !== 0) {
    rmSync(folder, { recursive: true });
    return null;
  }
  const ballast = join(folder, 'ballast');
  const forget = unmountedAtExit(folder);
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'a');
      try {
        const bytes = Buffer.alloc(statfsSync(folder).bsize);
        for (;;) writeSync(file, bytes);
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    setReadonly(isReadonly) {
      const options = `remount,${isReadonly ? 'ro' : 'rw'}`;
      const { status, stderr } = spawnSync('mount', ['-o', options, folder], { encoding: 'utf8' });
      assert.equal(status, 0, stderr);
    },
    remove() {
      forget();
      const unmounted = spawnSync('umount', [folder], { encoding: 'utf8' });
      assert.equal(unmounted.status, 0, unmounted.stderr);
      rmSync(folder, { recursive: true });
    },
  };
};

/** A disk whose file system turns itself read-only, as it does after an error of the hardware. */
export interface FailingDisk {
  readonly folder: string;
  fail(): void;
  remove(): void;
}

/** Null where this user may not mount the image of a disk. */
export const mountFailingDisk = (sizeMiB: number): FailingDisk | null => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-disk-'));
  const image = `${folder}.img`;
  const command = (...[name, ...args]: readonly [string, ...string[]]) => spawnSync(name, args, { encoding: 'utf8' });
  const mounted =
    command('truncate', '-s', `${sizeMiB}M`, image).status === 0 &&
    command('mke2fs', '-q', '-F', '-t', 'ext4', '-O', '^has_journal', image).status === 0 &&
    command('mount', '-o', 'loop,errors=remount-ro', image, folder).status === 0;
  if (!mounted) {
    rmSync(folder, { recursive: true });
    rmSync(image, { force: true });
    return null;
  }
  const forget = unmountedAtExit(folder);
  return {
    folder,
    fail() {
      const { status, stderr } = command('mount', '-o', 'remount,abort', folder);
      assert.equal(status, 0, stderr);
    },
    remove() {
      forget();
      const { status, stderr } = command('umount', folder);
      assert.equal(status, 0, stderr);
      rmSync(folder, { recursive: true });
      rmSync(image);
    },
  };
};

/** A way to keep a running service from writing its files, and to let it again. */
export interface WriteStop {
  /** Where the store is to be; undefined: anywhere. */
  readonly dataFolder: string | undefined;
  stop(pid: number): void;
  allow(pid: number): void;
  remove(): void;
}

const limitFiles = (pid: number, limit: string): void => {
  const { status, stderr } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${limit}`], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
};

/** Both are real: a disk that is full, and a kernel that refuses each write to a file behind its first bytes. */
export const writeStops: readonly { readonly name: string; open(): WriteStop | string }[] = [
  {
    name: 'a full disk',
    open() {
      const disk = mountDisk(4);
      if (disk === null) return 'this user may not mount a file system';
      return {
        dataFolder: join(disk.folder, 'data'),
        stop: disk.fill,
        allow: disk.free,
        remove: disk.remove,
      };
    },
  },
  {
    name: 'writes that fail',
    open() {
      if (spawnSync('prlimit', ['--version']).status !== 0) return 'there is no prlimit here';
      return {
        dataFolder: undefined,
        stop: (pid) => limitFiles(pid, '16:unlimited'),
        allow: (pid) => limitFiles(pid, 'unlimited:unlimited'),
        remove: () => undefined,
      };
    },
  },
];
