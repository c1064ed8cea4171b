import type { UploadedFile } from '../../../src/contract/operation.ts';

const bytes = (...parts: (string | readonly number[] | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))));

const u32 = (value: number): Buffer => {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32BE(value);
  return buffer;
};

const box = (type: string, ...content: Uint8Array[]): Buffer => {
  const inner = Buffer.concat(content);
  return Buffer.concat([u32(inner.length + 8), Buffer.from(type, 'latin1'), inner]);
};
const track = (handler: string): Buffer =>
  box('trak', box('mdia', box('hdlr', bytes([0, 0, 0, 0, 0, 0, 0, 0], handler, Buffer.alloc(12)))));

/** An MP4 whose tracks are listed behind the media, as many programs write it. */
export const mp4 = (brand: string, ...handlers: readonly string[]): Buffer =>
  Buffer.concat([
    box('ftyp', bytes(brand, [0, 0, 2, 0], 'isommp42')),
    box('mdat', Buffer.alloc(6000, 7)),
    box('moov', box('mvhd', Buffer.alloc(100)), ...handlers.map(track)),
  ]);

const element = (id: readonly number[], content: Uint8Array, unknownSize = false): Buffer =>
  bytes(
    id,
    unknownSize ? [0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff] : bytes([0x10], u32(content.length).subarray(1)),
    content,
  );

const entry = (type: number): Buffer => element([0xae], element([0x83], Buffer.from([type])));

/** A WebM; a live recording tells neither the length of its segment nor of its clusters. */
export const webm = (trackTypes: readonly number[], live = false): Buffer =>
  Buffer.concat([
    element([0x1a, 0x45, 0xdf, 0xa3], element([0x42, 0x82], Buffer.from('webm'))),
    element(
      [0x18, 0x53, 0x80, 0x67],
      Buffer.concat([
        element([0x16, 0x54, 0xae, 0x6b], Buffer.concat(trackTypes.map(entry))),
        element([0x1f, 0x43, 0xb6, 0x75], Buffer.alloc(5000, 1), live),
      ]),
      live,
    ),
  ]);

export const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
export const pdf = bytes('%PDF-1.4\n%', [0xe2, 0xe3, 0xcf, 0xd3], '\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n');
export const wav = bytes('RIFF', [36, 0, 0, 0], 'WAVEfmt ', [16, 0, 0, 0, 1, 0, 1, 0], Buffer.alloc(20));
/** One frame of MPEG 1 layer III at 128 kbit/s. */
export const mp3 = bytes([0xff, 0xfb, 0x90, 0x00], Buffer.alloc(413));

/** Files by the type that they are recognized as; null: as none. */
export const recognized: readonly (readonly [name: string, type: string | null, content: Uint8Array])[] = [
  ['a PNG', 'image/png', png],
  ['a JPEG', 'image/jpeg', bytes([0xff, 0xd8, 0xff, 0xe0, 0, 16], 'JFIF', Buffer.alloc(40))],
  ['a GIF of 1987', 'image/gif', bytes('GIF87a', Buffer.alloc(20))],
  ['a GIF of 1989', 'image/gif', bytes('GIF89a', Buffer.alloc(20))],
  ['a WebP', 'image/webp', bytes('RIFF', [26, 0, 0, 0], 'WEBPVP8L', Buffer.alloc(20))],
  ['a PDF', 'application/pdf', pdf],
  ['a WAV', 'audio/wav', wav],
  ['an MP3 frame', 'audio/mpeg', mp3],
  ['an MP3 with a tag', 'audio/mpeg', bytes('ID3', [4, 0, 0, 0, 0, 0x1f, 0x76], Buffer.alloc(5000))],
  ['a tag before FLAC', 'audio/mpeg', bytes('ID3', [4, 0, 0, 0, 0, 0, 0], 'fLaC', Buffer.alloc(60))],
  ['an Ogg', 'audio/ogg', bytes('OggS', Buffer.alloc(24), '\x01vorbis', Buffer.alloc(60))],
  ['an Ogg of Opus', 'audio/ogg', bytes('OggS', Buffer.alloc(24), 'OpusHead', Buffer.alloc(60))],
  ['a FLAC', 'audio/flac', bytes('fLaC', Buffer.alloc(60))],
  ['an AAC stream', 'audio/aac', bytes([0xff, 0xf1, 0x50, 0x80, 0x02, 0x1f, 0xfc], Buffer.alloc(60))],
  ['an M4A', 'audio/mp4', mp4('M4A ', 'soun')],
  ['an M4B', 'audio/mp4', mp4('M4B ', 'soun', 'text')],
  ['an MP4 of sound alone', 'audio/mp4', mp4('mp42', 'soun')],
  ['an MP4 with video', null, mp4('mp42', 'soun', 'vide')],
  ['an M4A with video', null, mp4('M4A ', 'vide')],
  ['an MP4 of another brand', null, mp4('isom', 'soun')],
  ['a WebM of sound alone', 'audio/webm', webm([2])],
  ['a live WebM of sound alone', 'audio/webm', webm([2], true)],
  ['a WebM with video', null, webm([2, 1])],
  ['a live WebM with video', null, webm([1, 2], true)],
  ['MPEG audio of layer II', null, bytes([0xff, 0xfd, 0x90, 0x00], Buffer.alloc(400))],
  ['a ZIP', null, bytes('PK', [3, 4, 20, 0, 0, 0, 0, 0], Buffer.alloc(60))],
  ['a Windows program', null, bytes('MZ', [0x90, 0], Buffer.alloc(200))],
  ['text', 'text/plain', Buffer.from('Grüß Gott, 世界 🌍\n')],
  ['markup', 'text/plain', Buffer.from('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>')],
  ['JSON', 'text/plain', Buffer.from('{"a": [1, 2, 3]}')],
  [
    'text that begins like a bitmap',
    'text/plain',
    Buffer.from('BM is how this sentence begins, and it is long enough to look real.'),
  ],
  ['text that begins like a GIF', 'text/plain', Buffer.from('GIF is a format of images.')],
  ['text with a byte order mark before %PDF-', 'text/plain', Buffer.from('\ufeff%PDF-1.4')],
  ['text whose character is cut after 1024 bytes', 'text/plain', Buffer.from(`${'a'.repeat(1023)}ü and more`)],
  ['text that is no text after 1024 bytes', 'text/plain', bytes('a'.repeat(1024), [0xff, 0, 0xfe])],
  ['text with a NUL', null, Buffer.from('abc\0def')],
  ['text with a NUL as its 1024th byte', null, bytes('a'.repeat(1023), [0], 'b')],
  ['Latin-1 text', null, bytes('Gr', [0xfc, 0xdf], ' Gott')],
  ['UTF-16 text', null, bytes([0xff, 0xfe, 0x41, 0, 0x42, 0])],
  ['a GIF that is a script, too', 'image/gif', bytes('GIF89a/*', Buffer.alloc(20), '*/=1;alert(1)')],
  ['a PDF that is a ZIP, too', 'application/pdf', Buffer.concat([pdf, bytes('PK', [5, 6], Buffer.alloc(18))])],
  ['a ZIP that is a PDF, too', null, Buffer.concat([bytes('PK', [3, 4, 20, 0], Buffer.alloc(40)), pdf])],
];

/** A file as a client sends it, in pieces. */
export const fileOf = (content: string | Uint8Array, name: string | null = 'a.txt', piece = 65_536): UploadedFile => {
  const all = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);
  const pieces = async function* (): AsyncGenerator<Uint8Array, void> {
    for (let at = 0; at < all.length; at += piece) yield all.subarray(at, at + piece);
  };
  return { name, bytes: pieces() };
};

export const readAll = async (source: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  for await (const chunk of source ?? []) chunks.push(chunk);
  return Buffer.concat(chunks);
};
