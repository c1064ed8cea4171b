import { randomFillSync } from 'node:crypto';

const pool = new Uint8Array(4096);
let used = pool.length;
let lastMs = 0;
let counter = 0;

const hex = Array.from({ length: 256 }, (_, value) => value.toString(16).padStart(2, '0'));
const byte = (value: number): string => hex[value & 0xff] ?? '00';

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
  return (
    byte(high >>> 24) +
    byte(high >>> 16) +
    byte(high >>> 8) +
    byte(high) +
    '-' +
    byte(ms >>> 8) +
    byte(ms) +
    '-' +
    byte(0x70 | (counter >>> 8)) +
    byte(counter) +
    '-' +
    byte(0x80 | (random() & 0x3f)) +
    byte(random()) +
    '-' +
    byte(random()) +
    byte(random()) +
    byte(random()) +
    byte(random()) +
    byte(random()) +
    byte(random())
  );
};

/** Lower-case hex of fresh random bytes. Not for secrets: it shares the pool of the ids. */
export const randomHex = (bytes: number): string => {
  let text = '';
  for (let at = 0; at < bytes; at += 1) text += byte(random());
  return text;
};
