import { randomHex } from '../ids.ts';

/** A span of this or another process, as W3C Trace Context names it. */
export interface TraceParent {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** The caller may have recorded its part of the trace. */
  readonly sampled: boolean;
}

const noTrace = '0'.repeat(32);
const noSpan = '0'.repeat(16);
// Later versions may add fields at the end; version ff is none.
const traceparent = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

/** Reads a `traceparent` header; null when there is none or it is not valid, which then begins a new trace. */
export const parseTraceparent = (header: unknown): TraceParent | null => {
  if (typeof header !== 'string') return null;
  const match = traceparent.exec(header.trim());
  if (match === null) return null;
  const [, version, traceId = '', spanId = '', flags = ''] = match;
  if (traceId === noTrace || spanId === noSpan) return null;
  if (version === '00' && header.trim().length !== 55) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
};

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

/** Random, not all zeros: an id of zeros means none. */
const randomId = (bytes: number, none: string): string => {
  for (;;) {
    const id = randomHex(bytes);
    if (id !== none) return id;
  }
};

export const newTraceId = (): string => randomId(16, noTrace);
export const newSpanId = (): string => randomId(8, noSpan);

/** Whether a trace falls into a share of all traces (0..1): every process decides the same for one trace. */
export const inShare = (traceId: string, ratio: number): boolean =>
  // The last digits are random by the W3C standard, the first ones may be a time.
  Number.parseInt(traceId.slice(-8), 16) < ratio * 0x1_0000_0000;
