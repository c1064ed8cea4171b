/** Fields of a protobuf message by number: varints and fixed numbers as bigint, everything else as bytes. */
export type Message = ReadonlyMap<number, readonly (bigint | Buffer)[]>;

const varint = (bytes: Buffer, from: number): { value: bigint; next: number } => {
  let value = 0n;
  for (let at = from, shift = 0n; ; at += 1, shift += 7n) {
    const byte = bytes[at] ?? 0;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, next: at + 1 };
  }
};

/** Reads a message without its schema: who asks knows the numbers. */
export const readMessage = (bytes: Buffer): Message => {
  const fields = new Map<number, (bigint | Buffer)[]>();
  for (let at = 0; at < bytes.length; ) {
    const { value: tag, next } = varint(bytes, at);
    const type = Number(tag & 7n);
    let value: bigint | Buffer;
    if (type === 0) ({ value, next: at } = varint(bytes, next));
    else if (type === 2) {
      const size = varint(bytes, next);
      at = size.next + Number(size.value);
      value = bytes.subarray(size.next, at);
    } else {
      at = next + (type === 1 ? 8 : 4);
      value = type === 1 ? bytes.readBigUInt64LE(next) : BigInt(bytes.readUInt32LE(next));
    }
    const field = Number(tag >> 3n);
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
};

export const messages = (message: Message, field: number): Message[] =>
  (message.get(field) ?? []).map((value) => readMessage(value as Buffer));
export const text = (message: Message, field: number): string =>
  (message.get(field)?.[0] as Buffer | undefined)?.toString() ?? '';
export const hex = (message: Message, field: number): string =>
  (message.get(field)?.[0] as Buffer | undefined)?.toString('hex') ?? '';
export const number = (message: Message, field: number): number => Number(message.get(field)?.[0] ?? 0n);

/** Fixed numbers that stand one behind the other, such as the bounds of a histogram. */
export const doubles = (message: Message, field: number): number[] =>
  packed(message, field, (all, at) => all.readDoubleLE(at));
export const counts = (message: Message, field: number): number[] =>
  packed(message, field, (all, at) => Number(all.readBigUInt64LE(at)));

const packed = (message: Message, field: number, read: (all: Buffer, at: number) => number): number[] => {
  const all = (message.get(field)?.[0] as Buffer | undefined) ?? Buffer.alloc(0);
  return Array.from({ length: all.length / 8 }, (_, index) => read(all, index * 8));
};

/** Attributes of OTLP: key and the text, number, flag or list of texts of its value. */
export const attributes = (message: Message, field: number): Record<string, string | number | boolean | string[]> =>
  Object.fromEntries(
    messages(message, field).map((pair) => {
      const [value] = messages(pair, 2);
      if (value === undefined) return [text(pair, 1), ''];
      if (value.has(1)) return [text(pair, 1), text(value, 1)];
      if (value.has(2)) return [text(pair, 1), number(value, 2) === 1];
      if (value.has(5)) {
        const [list] = messages(value, 5);
        return [text(pair, 1), list === undefined ? [] : messages(list, 1).map((one) => text(one, 1))];
      }
      return [text(pair, 1), number(value, 3)];
    }),
  );
