import { randomHex } from '../ids.ts';

/** A span of this or another process, as W3C Trace Context names it. */
export interface TraceParent {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** 16 lower-case hex digits. */
  readonly spanId: string;
  /** The caller may have recorded its part of the trace. */
  readonly sampled: boolean;
  /** `tracestate`: what the systems that the trace has passed say to one another. Absent: nothing. */
  readonly state?: string | undefined;
}

/** What makes the receiver's work part of a trace, under the names of W3C Trace Context. */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string;
}

const noTrace = '0'.repeat(32);
const noSpan = '0'.repeat(16);
// Later versions may add fields at the end; version ff is none.
const traceparent = /^(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

// The standard's: a key with or without its system, and printable text without comma and equals sign that ends with no space.
const stateKey = /^(?:[a-z][a-z0-9_\-*/]{0,255}|[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13})$/;
const stateValue = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const mostMembers = 32;
// What everybody has to pass on; more of it would go to every server and provider that a run calls.
const mostStateChars = 512;

/**
 * Reads a `tracestate`, newest member first. Undefined where there is none or any of it is not valid, as the standard asks;
 * whole members at the end are left out where it is longer than 512 characters.
 */
const parseTracestate = (header: unknown): string | undefined => {
  if (typeof header !== 'string') return undefined;
  const members = header.split(',').flatMap((part) => {
    const member = part.replace(/^[ \t]+|[ \t]+$/g, '');
    return member === '' ? [] : [member];
  });
  const keys = members.map((member) => member.slice(0, Math.max(0, member.indexOf('='))));
  const isValid = members.every(
    (member, at) => stateKey.test(keys[at] ?? '') && stateValue.test(member.slice(member.indexOf('=') + 1)),
  );
  if (!isValid || members.length > mostMembers || new Set(keys).size < keys.length) return undefined;
  let state = '';
  for (const member of members) {
    const longer = state === '' ? member : `${state},${member}`;
    if (longer.length > mostStateChars) break;
    state = longer;
  }
  return state === '' ? undefined : state;
};

/**
 * Reads a `traceparent` header and the `tracestate` beside it; null when there is no valid `traceparent`, which then begins a
 * new trace.
 */
export const parseTraceparent = (header: unknown, stateHeader?: unknown): TraceParent | null => {
  if (typeof header !== 'string') return null;
  const match = traceparent.exec(header.trim());
  if (match === null) return null;
  const [, version, traceId = '', spanId = '', flags = ''] = match;
  if (traceId === noTrace || spanId === noSpan) return null;
  if (version === '00' && header.trim().length !== 55) return null;
  const state = parseTracestate(stateHeader);
  return {
    ...{ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 },
    ...(state === undefined ? {} : { state }),
  };
};

export const formatTraceparent = ({ traceId, spanId, sampled }: TraceParent): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;

export const traceHeaders = (span: TraceParent): TraceHeaders =>
  span.state === undefined
    ? { traceparent: formatTraceparent(span) }
    : { traceparent: formatTraceparent(span), tracestate: span.state };

/** The headers among other members. */
export const headersIn = ({ traceparent, tracestate }: Partial<TraceHeaders>): Partial<TraceHeaders> => ({
  ...(traceparent === undefined ? {} : { traceparent }),
  ...(tracestate === undefined ? {} : { tracestate }),
});

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
