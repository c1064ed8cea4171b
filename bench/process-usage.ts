import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';

// Linux reports processor time to user space in hundredths of a second, whatever the kernel's own clock.
const msPerTick = 10;

const read = (pid: number, file: string): string | null => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    // Another system than Linux, or a kernel that does not tell: the column stays empty.
    return null;
  }
};

const field = (text: string | null, name: string): number =>
  Number(text?.match(new RegExp(`^${name}:\\s+(\\d+)`, 'm'))?.[1] ?? Number.NaN);

/**
 * Processor time of all threads so far, or of the children that have ended and were waited for, in milliseconds; NaN where
 * it cannot be known, as with the others here.
 */
export const cpuMs = (pid: number, of: 'itself' | 'waited for' = 'itself'): number => {
  // The name in parentheses may hold spaces; utime, stime, cutime and cstime are the 12th and following fields after it.
  const fields = read(pid, 'stat')?.split(') ').at(-1)?.split(' ') ?? [];
  const first = of === 'itself' ? 11 : 13;
  return (Number(fields[first] ?? Number.NaN) + Number(fields[first + 1] ?? Number.NaN)) * msPerTick;
};

const bytesPerKib = 1024;

/** Resident memory now, and the most it has been. */
export const residentBytes = (pid: number): number => field(read(pid, 'status'), 'VmRSS') * bytesPerKib;
export const peakResidentBytes = (pid: number): number => field(read(pid, 'status'), 'VmHWM') * bytesPerKib;

/** Bytes that the process has given to storage: sockets do not count, log and checkpoint both do. */
export const writtenBytes = (pid: number): number => field(read(pid, 'io'), 'write_bytes');

/** Processor time of everything on the machine so far, in milliseconds. */
export const busyMs = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
