import { randomFillSync } from 'node:crypto';

const pool = new Uint8Array(4096);
let used = pool.length;
let lastMs = 0;
let counter = 0;

const digits = Buffer.from('0123456789abcdef');
// An id is written here and read as one string: parts put together would stay parts until somebody compares them.
const text = Buffer.from('00000000-0000-0000-0000-000000000000');
const hexText = Buffer.alloc(64);

const putIn = (target: Buffer, at: number, value: number): void => {
  target[at] = digits[(value >>> 4) & 0xf] ?? 0;
  target[at + 1] = digits[value & 0xf] ?? 0;
};

const put = (at: number, value: number): void => putIn(text, at, value);

/** Fresh random bytes from a pool: one call into the kernel for hundreds of ids. */
const random = (): number => {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  return pool[used++] ?? 0;
};

/**
 * UUID version 7 (RFC 9562, section 5.7), strictly increasing within the process: the 12 bits after the time are a
 * counter (method 1 of section 6.2), so that ids of one millisecond sort in the order they were made.
 */
export const newId = (now: number = Date.now()): string => {
  if (now > lastMs) {
    lastMs = now;
    counter = random() & 0x7f;
  } else {
    counter += 1;
    if (counter > 0xfff) {
      lastMs += 1;
      counter = 0;
    }
  }
  const ms = lastMs;
  const high = Math.floor(ms / 0x1_0000);
  put(0, high >>> 24);
  put(2, high >>> 16);
  put(4, high >>> 8);
  put(6, high);
  put(9, ms >>> 8);
  put(11, ms);
  put(14, 0x70 | (counter >>> 8));
  put(16, counter);
  put(19, 0x80 | (random() & 0x3f));
  put(21, random());
  for (let at = 24; at < text.length; at += 2) put(at, random());
  return text.toString('latin1');
};

/** Lower-case hex of at most 32 fresh random bytes. Not for secrets: it shares the pool of the ids. */
export const randomHex = (bytes: number): string => {
  for (let at = 0; at < bytes; at += 1) putIn(hexText, 2 * at, random());
  return hexText.toString('latin1', 0, 2 * bytes);
};
