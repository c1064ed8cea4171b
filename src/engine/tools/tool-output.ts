import type { Json } from '../../contract/schema.ts';
import { nestsTooDeep } from '../../core/documents/json-depth.ts';
import { maxJsonDepth } from '../../core/documents/json-shape.ts';
import { type AttachmentDescriptor, ToolError } from './tool.ts';

export interface Truncation {
  readonly originalBytes: number;
  readonly omittedBytes: number;
}

const open = '{"truncated":true,"omittedBytes":';
const middle = ',"content":"';
const close = '"}';
const envelopeBytes = open.length + middle.length + close.length;

/** Smallest limit that holds an envelope without content, for outputs of up to ten digits of bytes. */
export const minOutputBytes = envelopeBytes + 10;

/** Bounds a result whose tool has no limit, where `Tools:DefaultMaxOutputBytes` sets none. */
const maxOutputBytes = 8_388_608;

/** Bytes of a result that the model gets to see: the tool's own limit, else the default, else the most there is. */
export const outputLimit = (own: number | null, byDefault: number | null): number => own ?? byDefault ?? maxOutputBytes;

/**
 * The text that the model gets for a result: a string as it is, nothing as `null`, everything else as JSON.
 * Half surrogate pairs are replaced, because UTF-8 cannot hold them. Throws TypeError for what JSON cannot hold, and
 * ToolError for a value that nests deeper than stored JSON may.
 */
export const canonicalText = (value: Json | undefined): string => {
  if (typeof value === 'string') return value.toWellFormed();
  const text = jsonText(value);
  if (nestsTooDeep(text)) throw tooDeep();
  return text;
};

const tooDeep = (): ToolError => new ToolError(`The result of the tool is nested deeper than ${maxJsonDepth} levels.`);

const jsonText = (value: Json | undefined): string => {
  try {
    return JSON.stringify(value ?? null) ?? 'null';
  } catch (error) {
    // Written by recursion, which ends at a depth that depends on the machine.
    throw error instanceof RangeError ? tooDeep() : error;
  }
};

/** Bytes of a code point as JSON text writes it. */
const jsonBytes = (code: number): number => {
  if (code === 0x22 || code === 0x5c) return 2;
  if (code < 0x20) return code === 8 || code === 9 || code === 10 || code === 12 || code === 13 ? 2 : 6;
  return utf8Bytes(code);
};

const utf8Bytes = (code: number): number => (code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4);

/**
 * A text over `maxBytes` of UTF-8 becomes `{"truncated":true,"omittedBytes":N,"content":"…"}`, whole within the limit
 * and cut between characters. `maxBytes` is at least MIN_OUTPUT_BYTES.
 */
export const truncateOutput = (
  text: string,
  maxBytes: number,
): { readonly text: string; readonly truncation: Truncation | null } => {
  // A UTF-16 unit is at most three bytes, so most texts need no count.
  if (text.length * 3 <= maxBytes) return { text, truncation: null };
  const originalBytes = Buffer.byteLength(text);
  if (originalBytes <= maxBytes) return { text, truncation: null };
  // Digits of the whole size: what is left out is never longer, so the envelope stays within the limit.
  const budget = maxBytes - envelopeBytes - String(originalBytes).length;
  let spent = 0;
  let keptBytes = 0;
  let end = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    spent += jsonBytes(code);
    if (spent > budget) break;
    keptBytes += utf8Bytes(code);
    end += character.length;
  }
  const omittedBytes = originalBytes - keptBytes;
  const content = JSON.stringify(text.slice(0, end)).slice(1, -1);
  return {
    text: `${open}${omittedBytes}${middle}${content}${close}`,
    truncation: { originalBytes, omittedBytes },
  };
};

/**
 * A line for each saved file that the text does not name by its id, so that the model can speak of it. The lines follow
 * the text, outside the limit of the output.
 */
export const attachmentLines = (text: string, saved: readonly AttachmentDescriptor[]): string =>
  saved
    .filter(({ id }) => !text.includes(id))
    .map(({ id, fileName, mediaType }) => `\n[attachment ${id}: ${JSON.stringify(fileName)}, ${mediaType}]`)
    .join('');
