const open = '=?base64?';
const close = '?=';
const plain = /^[\x20-\x7e\t]+$/;

/** A text as a header carries it: as it is where it is plain ASCII, else as Base64 of its UTF-8. */
export const encodeHeaderValue = (text: string): string => {
  const isPlain = plain.test(text) && text === text.trim() && !(text.startsWith(open) && text.endsWith(close));
  return isPlain ? text : `${open}${Buffer.from(text.toWellFormed(), 'utf8').toString('base64')}${close}`;
};

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** The text of a header; null: it has the form of an encoded one and is none. */
export const decodeHeaderValue = (value: string): string | null => {
  if (!value.startsWith(open) || !value.endsWith(close)) return value;
  const encoded = value.slice(open.length, -close.length);
  if (!base64.test(encoded)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64'));
  } catch {
    // No UTF-8.
    return null;
  }
};
