import { isPlain } from './comparable-text.ts';

/** A text with the characters that read as plain ones replaced by them, and where each unit stands in the original. */
export interface PlainView {
  readonly text: string;
  /** Offset in the original by unit, and the length of the original at the end; null: nothing has moved. */
  readonly offsets: Uint32Array | null;
}

const invisible = /^(?!\u0085)[\p{Default_Ignorable_Code_Point}\p{Cc}\ufff9-\ufffb]$/u;
const space = /^[\p{Zs}\t]$/u;
const dash = /^[\p{Pd}\u2212]$/u;
const digit = /^\p{Nd}$/u;

const isControl = (code: number): boolean => (code < 0x20 && (code < 0x09 || code > 0x0d)) || code === 0x7f;

const unchanged = -1;
const dropped = -2;

/** The value of a decimal digit: those of one script stand in a row from 0 to 9. */
const digitValue = (code: number): number => {
  let zero = code;
  while (code - zero < 9 && digit.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return code - zero;
};

const classify = (code: number): number => {
  const character = String.fromCodePoint(code);
  if (invisible.test(character)) return dropped;
  if (space.test(character)) return 0x20;
  if (dash.test(character)) return 0x2d;
  const normal = character.normalize('NFKC');
  if (normal.length === 1 && normal.charCodeAt(0) < 0x80) return normal.charCodeAt(0);
  return digit.test(character) ? 0x30 + digitValue(code) : unchanged;
};

// Enough for every script that one text is likely to have; a hostile text must not fill the memory.
const mostPlainCodes = 4096;
const plainCodes = new Map<number, number>();

const plainOf = (code: number): number => {
  if (code < 0x80) return isControl(code) ? dropped : code;
  // Ideographs and syllables, which a text of them would have many of.
  if ((code >= 0x3400 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3)) return unchanged;
  const plain = plainCodes.get(code);
  if (plain !== undefined) return plain;
  const made = classify(code);
  if (plainCodes.size < mostPlainCodes) plainCodes.set(code, made);
  return made;
};

const shortEscapes: Readonly<Record<string, number>> = { n: 0x0a, r: 0x0d, t: 0x20, b: 0x08, f: 0x0c };
const hexDigits = /^[0-9A-Fa-f]{4}$/;

/** The unit that an escape of JSON at `at` stands for, and its length; null: it is no escape. */
const escapeAt = (text: string, at: number): { readonly unit: number; readonly length: number } | null => {
  const letter = text[at + 1] ?? '';
  if (letter === 'u') {
    const hex = text.slice(at + 2, at + 6);
    return hexDigits.test(hex) ? { unit: Number.parseInt(hex, 16), length: 6 } : null;
  }
  if (letter === '"' || letter === '/' || letter === '\\') return { unit: letter.charCodeAt(0), length: 2 };
  const unit = shortEscapes[letter];
  return unit === undefined ? null : { unit, length: 2 };
};

/** The text with its escapes of JSON decoded. */
export const withoutEscapes = (text: string): string => {
  let decoded = '';
  let from = 0;
  for (let at = text.indexOf('\\'); at !== -1; at = text.indexOf('\\', at)) {
    const sequence = escapeAt(text, at);
    if (sequence === null) {
      at += 1;
      continue;
    }
    decoded += text.slice(from, at) + String.fromCharCode(sequence.unit);
    at += sequence.length;
    from = at;
  }
  return decoded + text.slice(from);
};

/** `decodesJson`: escapes of JSON count as what they stand for. */
export const plainView = (text: string, decodesJson: boolean): PlainView => {
  if (!decodesJson && isPlain(text)) return { text, offsets: null };
  const units = new Uint16Array(text.length);
  const offsets = new Uint32Array(text.length + 1);
  let length = 0;
  const put = (unit: number, offset: number): void => {
    units[length] = unit;
    offsets[length] = offset;
    length += 1;
  };
  for (let at = 0; at < text.length; ) {
    const written = decodesJson && text.charCodeAt(at) === 0x5c ? escapeAt(text, at) : null;
    const code = written?.unit ?? text.codePointAt(at) ?? 0;
    const width = written?.length ?? (code > 0xffff ? 2 : 1);
    const plain = plainOf(code);
    if (plain >= 0) put(plain, at);
    else if (plain === unchanged && (written !== null || width === 1)) put(code, at);
    else if (plain === unchanged) {
      put(text.charCodeAt(at), at);
      put(text.charCodeAt(at + 1), at + 1);
    }
    at += width;
  }
  offsets[length] = text.length;
  return {
    text: Buffer.from(units.buffer, 0, length * 2).toString('utf16le'),
    offsets: offsets.subarray(0, length + 1),
  };
};
