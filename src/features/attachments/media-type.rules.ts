import { fileTypeFromBuffer } from 'file-type';

/** What the first bytes of a file tell. */
export interface DetectedType {
  /** One of the recognized types; null for every other. */
  readonly mediaType: string | null;
  /** Best name for a refusal: the recognized type, else what the bytes are known as. */
  readonly shownType: string;
  /** Set when the type holds only for a file without a video track, which the whole file tells. */
  readonly container: 'mp4' | 'webm' | null;
}

/** Bytes that tell the type: what the library asks for. */
export const detectionBytes = 4100;
const textBytes = 1024;
const unknownType = 'application/octet-stream';

interface Signature {
  readonly mediaType: string;
  /** On the first bytes, two hexadecimal digits each. */
  readonly start: RegExp;
  /** What the library calls such a file. Absent: the start alone decides, because the library looks further and disagrees. */
  readonly libraryNames?: readonly string[];
  readonly container?: 'mp4' | 'webm';
}

// The library tells a real file from one that only begins like it. Where it is more generous than the table (a GIF of
// any version, audio of any layer, markup behind a byte order mark), the start rules it out again.
const signatures: readonly Signature[] = [
  { mediaType: 'image/png', start: /^89504e470d0a1a0a/ },
  { mediaType: 'image/jpeg', start: /^ffd8ff/ },
  { mediaType: 'image/gif', start: /^47494638(?:37|39)61/, libraryNames: ['image/gif'] },
  { mediaType: 'image/webp', start: /^52494646.{8}57454250/, libraryNames: ['image/webp'] },
  { mediaType: 'application/pdf', start: /^255044462d/, libraryNames: ['application/pdf'] },
  { mediaType: 'audio/wav', start: /^52494646.{8}57415645/, libraryNames: ['audio/wav'] },
  { mediaType: 'audio/mpeg', start: /^494433/ },
  { mediaType: 'audio/mpeg', start: /^ff(?:e[23]|f[23ab])/, libraryNames: ['audio/mpeg'] },
  { mediaType: 'audio/ogg', start: /^4f676753/ },
  { mediaType: 'audio/flac', start: /^664c6143/, libraryNames: ['audio/flac'] },
  { mediaType: 'audio/aac', start: /^fff[0189]/, libraryNames: ['audio/aac'] },
  {
    mediaType: 'audio/mp4',
    start: /^.{8}66747970(?:4d344120|4d344220|6d703432)/,
    libraryNames: ['audio/x-m4a', 'audio/mp4', 'video/mp4'],
    container: 'mp4',
  },
  { mediaType: 'audio/webm', start: /^1a45dfa3/, libraryNames: ['video/webm'], container: 'webm' },
];

/** Longest signature above, in bytes. */
const startBytes = 16;

/** What the library calls it; null when it does not know, or cannot read what it believed to know. */
const nameByLibrary = async (head: Uint8Array): Promise<string | null> => {
  try {
    return (await fileTypeFromBuffer(head))?.mime ?? null;
  } catch {
    // Damaged beyond what the library reads: it is not what it looks like.
    return null;
  }
};

/** The first bytes are UTF-8 without NUL; a character may be cut off where they end. */
const isText = (head: Uint8Array): boolean => {
  const start = head.subarray(0, textBytes);
  if (start.includes(0)) return false;
  try {
    // As part of a stream, so that a character that is cut off is no error.
    new TextDecoder('utf-8', { fatal: true }).decode(start, { stream: true });
    return true;
  } catch {
    return false;
  }
};

/**
 * The type of a file by its bytes alone. `head` is its first `detectionBytes`, or all of it. Markup, scripts, CSV and
 * JSON are plain text; a file of two natures is what it begins with.
 */
export const detectMediaType = async (head: Uint8Array): Promise<DetectedType> => {
  const start = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, startBytes)).toString('hex');
  const libraryName = await nameByLibrary(head);
  const match = signatures.find(
    (signature) => signature.start.test(start) && (signature.libraryNames?.includes(libraryName ?? '') ?? true),
  );
  if (match !== undefined)
    return { mediaType: match.mediaType, shownType: match.mediaType, container: match.container ?? null };
  if (isText(head)) return { mediaType: 'text/plain', shownType: 'text/plain', container: null };
  return { mediaType: null, shownType: libraryName ?? unknownType, container: null };
};
