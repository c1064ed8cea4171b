import type { JsonLimits } from '../../core/documents/json-shape.ts';

/** What one answer of a provider may take, whatever it says it is. */
export interface AnswerLimits {
  /**
   * Bytes of an answer that comes whole. Of a streamed one: of what it holds (text, reasoning, tool calls), and of what
   * may come without adding to that.
   */
  readonly maxBytes: number;
  /** Bytes of a streamed answer as it is sent: each word travels in an event of some hundred bytes. */
  readonly maxStreamBytes: number;
  /** Milliseconds in which a streamed answer must go on, and one that comes whole must be there. */
  readonly stallMs: number;
  /** What an answer that comes whole may hold as JSON; left out: what one event may. */
  readonly json?: JsonLimits;
}

export const defaultAnswerLimits: AnswerLimits = {
  maxBytes: 8_388_608,
  maxStreamBytes: 268_435_456,
  stallMs: 600_000,
};
