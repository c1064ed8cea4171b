/** How an answer is written: as events, or as one JSON document. */
export type AnswerForm = 'events' | 'document';

const isBlank = (byte: number): boolean =>
  byte === 0x20 ||
  byte === 0x0a ||
  byte === 0x0d ||
  byte === 0x09 ||
  // A byte order mark
  byte === 0xef ||
  byte === 0xbb ||
  byte === 0xbf;

/** First bytes of the lines that events have: `data:`, `event:`, `id:`, `retry:` and comments. */
const eventBytes = new Set([...'deir:'].map((letter) => letter.charCodeAt(0)));

/**
 * The form that the first byte of an answer shows: servers stream what was asked for at once, and send at once what was
 * to be streamed. Null: nothing but blanks so far, which some servers send to keep the connection open. What is neither
 * is read as it was asked for.
 */
export const answerForm = (bytes: Uint8Array, asked: AnswerForm): AnswerForm | null => {
  for (const byte of bytes) {
    if (isBlank(byte)) continue;
    if (byte === 0x7b || byte === 0x5b) return 'document';
    return eventBytes.has(byte) ? 'events' : asked;
  }
  return null;
};

const tailBytes = 64;
const doneLine = /(?:^|[\r\n])data:[ \t]*\[DONE\]\s*$/;

/** The last bytes of a stream, which say whether the server closed it with `[DONE]`. */
export class StreamTail {
  #bytes: Buffer = Buffer.alloc(0);

  add(chunk: Uint8Array): void {
    const last = Buffer.from(chunk.subarray(-tailBytes));
    this.#bytes = last.byteLength >= tailBytes ? last : Buffer.concat([this.#bytes, last]).subarray(-tailBytes);
  }

  get saysDone(): boolean {
    return doneLine.test(this.#bytes.toString('latin1'));
  }
}
