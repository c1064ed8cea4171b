/** Reads at most `length` bytes of a file at `offset`; fewer at its end. */
export type ReadAt = (offset: number, length: number) => Promise<Uint8Array>;

// A real file has a handful of boxes and tracks. A made-up one must not keep the service reading.
const maxSteps = 2000;

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

interface Span {
  readonly from: number;
  /** Exclusive; infinite where the length is not told. */
  readonly to: number;
}

interface Walk {
  readonly read: ReadAt;
  steps: number;
}

interface Box extends Span {
  readonly type: string;
}

/** The box at an offset (ISO/IEC 14496-12, section 4.2); null when there is none. */
const boxAt = async ({ read }: Walk, at: number, end: number): Promise<Box | null> => {
  const head = await read(at, 16);
  if (head.byteLength < 8) return null;
  const view = viewOf(head);
  const size = view.getUint32(0);
  const type = Buffer.from(head.subarray(4, 8)).toString('latin1');
  // 0: to the end of the file; 1: the size follows in 64 bits.
  if (size === 0) return { type, from: at + 8, to: end };
  if (size !== 1) return size < 8 ? null : { type, from: at + 8, to: Math.min(at + size, end) };
  if (head.byteLength < 16) return null;
  const large = Number(view.getBigUint64(8));
  return large < 16 ? null : { type, from: at + 16, to: Math.min(at + large, end) };
};

const boxesIn = async function* (walk: Walk, { from, to }: Span): AsyncGenerator<Box, void> {
  for (let at = from; at < to; ) {
    if (walk.steps >= maxSteps) return;
    walk.steps += 1;
    const box = await boxAt(walk, at, to);
    if (box === null) return;
    yield box;
    at = box.to;
  }
};

/** Whether a `moov`, or a part of one, has a track whose handler is `vide`. */
const mp4Video = async (walk: Walk, span: Span): Promise<boolean> => {
  for await (const box of boxesIn(walk, span)) {
    if (box.type === 'hdlr') {
      // Version, flags and a reserved word stand before the handler's type.
      const handler = Buffer.from(await walk.read(box.from + 8, 4)).toString('latin1');
      if (handler === 'vide') return true;
    } else if (box.type === 'moov') return mp4Video(walk, box);
    else if (['trak', 'mdia'].includes(box.type) && (await mp4Video(walk, box))) return true;
  }
  return false;
};

const segmentId = 0x18538067;
const tracksId = 0x1654ae6b;
const trackEntryId = 0xae;
const trackTypeId = 0x83;
const clusterId = 0x1f43b675;
const videoTrack = 1;

interface Element extends Span {
  readonly id: number;
}

/** The element at an offset (RFC 8794, section 4): an id and a size of variable length. */
const elementAt = async ({ read }: Walk, at: number, end: number): Promise<Element | null> => {
  const head = await read(at, 12);
  const idBytes = Math.clz32(head[0] ?? 0) - 23;
  const sizeBytes = Math.clz32(head[idBytes] ?? 0) - 23;
  if (idBytes > 4 || sizeBytes > 8 || head.byteLength < idBytes + sizeBytes) return null;
  let id = 0;
  for (let index = 0; index < idBytes; index += 1) id = id * 256 + (head[index] ?? 0);
  let size = (head[idBytes] ?? 0) & (0xff >> sizeBytes);
  let isUnknown = size === 0xff >> sizeBytes;
  for (let index = 1; index < sizeBytes; index += 1) {
    const byte = head[idBytes + index] ?? 0;
    size = size * 256 + byte;
    isUnknown &&= byte === 0xff;
  }
  const from = at + idBytes + sizeBytes;
  return { id, from, to: isUnknown ? end : Math.min(from + size, end) };
};

const webmVideo = async (walk: Walk, { from, to }: Span): Promise<boolean> => {
  for (let at = from; at < to; ) {
    if (walk.steps >= maxSteps) return false;
    walk.steps += 1;
    const element = await elementAt(walk, at, to);
    // What is played comes after what says of which tracks it is.
    if (element === null || (element.id === clusterId && element.to === to)) return false;
    if (element.id === trackTypeId && (await walk.read(element.from, 1))[0] === videoTrack) return true;
    if ([segmentId, tracksId, trackEntryId].includes(element.id) && (await webmVideo(walk, element))) return true;
    at = element.to;
  }
  return false;
};

/** Whether a container of known kind has a video track. Nothing but the headers of boxes and elements is read. */
export const hasVideoTrack = (container: 'mp4' | 'webm', read: ReadAt, sizeBytes: number): Promise<boolean> => {
  const walk: Walk = { read, steps: 0 };
  const whole = { from: 0, to: sizeBytes };
  return container === 'mp4' ? mp4Video(walk, whole) : webmVideo(walk, whole);
};
