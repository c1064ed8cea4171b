import type { AttributeInput } from '../../core/telemetry/span.ts';

/** A span below that of a call. `close` ends it; an error type marks it as failed. */
export interface OpenSpan {
  set(attributes: AttributeInput): void;
  close(errorType: string | null): void;
}

/** Opens one. */
export type OpensSpan = (name: string, attributes: AttributeInput) => OpenSpan;
