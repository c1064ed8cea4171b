import type { HostileCall } from './schema-bodies.ts';

// Each character of these texts is a byte.
const varint = (value: number): string =>
  value < 0x80 ? String.fromCharCode(value) : String.fromCharCode((value & 0x7f) | 0x80) + varint(value >>> 7);

const field = (number: number, content: string): string =>
  String.fromCharCode((number << 3) | 2) + varint(content.length) + content;

/** Bytes that the lengths of the fields around take at most. */
const around = 40;

/** By the numbers of the fields that lead to them: elements of two bytes, as many as fit. */
const places: Readonly<Record<string, readonly number[]>> = {
  'empty resources': [1],
  'empty scopes': [1, 2],
  'empty spans': [1, 2, 2],
  'empty attributes': [1, 2, 2, 9],
  'empty events': [1, 2, 2, 11],
  'empty links': [1, 2, 2, 13],
  'empty attributes of the resource': [1, 1, 1],
  'empty values of a list': [1, 2, 2, 9, 2, 5, 1],
  'empty pairs': [1, 2, 2, 9, 2, 6, 1],
  'unknown fields': [7],
  'unknown fields of a span': [1, 2, 2, 14],
};

/** Traces in Protocol Buffers. */
export const protobufTraces: readonly HostileCall[] = Object.entries(places).map(([name, path]) => ({
  headers: { 'content-type': 'application/x-protobuf' },
  body: {
    name: `protobuf ${name}`,
    make: (bytes) =>
      path
        .slice(0, -1)
        .reduceRight(
          (content, number) => field(number, content),
          field(path.at(-1) ?? 0, '').repeat(Math.floor((bytes - around) / 2)),
        ),
  },
}));
