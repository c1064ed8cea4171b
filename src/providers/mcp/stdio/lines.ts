/** Lines of a stream as they are whole; `tooLong` is called once for one that is longer than `maxBytes`, and nothing after it. */
export const lineReader = (maxBytes: number, line: (text: string) => void, tooLong: () => void) => {
  let parts: Uint8Array[] = [];
  let size = 0;
  let isOver = false;
  const take = (end: Uint8Array): string => {
    const text = Buffer.concat([...parts, end]).toString('utf8');
    parts = [];
    size = 0;
    return text.endsWith('\r') ? text.slice(0, -1) : text;
  };
  const read = (chunk: Uint8Array): void => {
    let rest = chunk;
    while (!isOver) {
      const at = rest.indexOf(0x0a);
      const part = at === -1 ? rest : rest.subarray(0, at);
      size += part.byteLength;
      if (size > maxBytes) {
        isOver = true;
        parts = [];
        tooLong();
        return;
      }
      if (at === -1) {
        parts.push(part);
        return;
      }
      line(take(part));
      rest = rest.subarray(at + 1);
    }
  };
  return {
    read,
    /** After the last byte: a line that nothing has ended. */
    end(): void {
      if (!isOver && size > 0) line(take(new Uint8Array()));
    },
  };
};
