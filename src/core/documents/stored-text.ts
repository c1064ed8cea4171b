const nul = '\0';
const replacement = '\uFFFD';

/**
 * A text as every store holds it: PostgreSQL takes no U+0000, so U+FFFD takes its place on all of them. Half a surrogate
 * pair becomes U+FFFD as well, when a driver encodes the text as UTF-8. JSON escapes both, and keeps them.
 */
export const storedText = (text: string): string => (text.includes(nul) ? text.replaceAll(nul, replacement) : text);

const isStorable = (text: string): boolean => !text.includes(nul) && text.isWellFormed();

/** Goes through a list in place of recursion: callers in this process may nest a value as deep as they like. */
const holdsOnlyStorable = (whole: unknown): boolean => {
  const left: unknown[] = [whole];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string' && !isStorable(value)) return false;
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value) && !Object.keys(value).every(isStorable)) return false;
    for (const item of Object.values(value)) left.push(item);
  }
  return true;
};

const replaced = (value: unknown): unknown => {
  if (typeof value === 'string') return storedText(value.toWellFormed());
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(replaced);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [replaced(key), replaced(member)]));
};

/** A value that a caller in this process gives, with each of its texts as stores hold it; the same value where nothing changes. */
export const storedValue = (value: unknown): unknown => (holdsOnlyStorable(value) ? value : replaced(value));

const backslash = 0x5c;
const letterU = 0x75;
const [lowerD, lowerF] = [0x64, 0x66];

/** Of the digits of hexadecimal numbers their values; -1 for all other bytes. */
const digitValues = new Int8Array(256).fill(-1);
for (const [value, digit] of [...'0123456789abcdef'].entries())
  for (const form of [digit, digit.toUpperCase()]) digitValues[form.charCodeAt(0)] = value;

/** The code unit that the escape at `at` stands for; -1: there is none. */
const escapedUnit = (bytes: Buffer, at: number): number => {
  if (bytes[at] !== backslash || bytes[at + 1] !== letterU) return -1;
  let unit = 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const value = digitValues[bytes[digit] ?? 0] as number;
    if (value === -1) return -1;
    unit = unit * 16 + value;
  }
  return unit;
};

const isHighHalf = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowHalf = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/**
 * The JSON that a caller sent, with each of its texts as stores hold it, so that an answer shows what is stored, and a text is the
 * same whether it is stored by itself or as part of JSON; the same bytes where nothing changes. UTF-8 has NUL and half surrogates
 * in JSON as escapes only, so that one pass over the bytes does it, whatever they hold.
 */
export const storedJson = (source: Uint8Array): Uint8Array => {
  const bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
  const first = bytes.indexOf(backslash);
  if (first === -1) return source;
  let copy: Buffer | null = null;
  for (let at = first; at < bytes.length; at += 1) {
    if (bytes[at] !== backslash) continue;
    const unit = escapedUnit(bytes, at);
    // Of any other escape the letter, so that a backslash that is escaped begins none.
    at += 1;
    if (unit !== 0 && !isHighHalf(unit) && !isLowHalf(unit)) continue;
    if (isHighHalf(unit) && isLowHalf(escapedUnit(bytes, at + 5))) {
      at += 10;
      continue;
    }
    copy ??= Buffer.from(bytes);
    copy[at + 1] = lowerF;
    copy[at + 2] = lowerF;
    copy[at + 3] = lowerF;
    copy[at + 4] = lowerD;
  }
  return copy ?? source;
};
