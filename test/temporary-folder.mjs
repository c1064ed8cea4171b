/** Where test runs put what they write. */
import { accessSync, constants, readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import process from 'node:process';

/** Memory with room for all that tests write, from which programs may be started; else the usual folder. */
export const temporaryFolder = () => {
  const memory = '/dev/shm';
  if (process.env.TMPDIR !== undefined) return tmpdir();
  try {
    accessSync(memory, constants.W_OK);
    const { bavail, bsize } = statfsSync(memory);
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === memory);
    const mayExecute = mount?.split(' ')[3]?.split(',').includes('noexec') === false;
    return mayExecute && bavail * bsize > 4e9 ? memory : tmpdir();
  } catch {
    // No Linux, or one without shared memory.
    return tmpdir();
  }
};
