/** A stretch of bytes that lie in chunks of one length, of which the last may be shorter; ends where they end. */
export const readChunks = async (
  chunkAt: (index: number) => Promise<Buffer>,
  chunkBytes: number,
  offset: number,
  length: number,
): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for (let at = offset; at < offset + length; ) {
    const from = at % chunkBytes;
    const part = (await chunkAt(Math.floor(at / chunkBytes))).subarray(from, from + offset + length - at);
    if (part.length === 0) break;
    parts.push(part);
    at += part.length;
  }
  return Buffer.concat(parts);
};
