import { AcpError } from '../../contract/errors.ts';

/** How much of one request is read. */
export interface OtlpLimits {
  /** Spans; those beyond are counted, and neither read nor stored. */
  readonly spans: number;
  /** Resources and libraries, which group the spans. */
  readonly groups: number;
  readonly attributesPerSpan: number;
  /** Attributes, their values to every depth, events, links, and unknown fields. */
  readonly values: number;
  /** The same of one span or resource, which is read in one turn of the event loop. */
  readonly valuesOfPart: number;
}

/** Collectors send up to some eight thousand. */
export const maxSpansPerRequest = 10_000;
// An attribute with a name that says something has more than twenty bytes, and a number of a vector eleven.
const bytesPerValue = 8;

export const otlpLimits = (maxRequestBytes: number): OtlpLimits => ({
  spans: maxSpansPerRequest,
  // A resource and a library for each span.
  groups: 2 * maxSpansPerRequest,
  attributesPerSpan: 10_000,
  // Each attribute of the most is an object in an object.
  valuesOfPart: 100_000,
  values: Math.floor(maxRequestBytes / bytesPerValue),
});

const tooMany = (what: string): AcpError => new AcpError('validation-failed', `The body has ${what}.`);

/**
 * Counts what a request has of each kind while it is read, so that nothing is made of what is beyond a limit. An element of
 * two bytes takes a hundred times as much once it is an object.
 */
export class OtlpCount {
  readonly #limits: OtlpLimits;
  #spans = 0;
  #groups = 0;
  #values = 0;
  #ofPart = 0;

  constructor(limits: OtlpLimits) {
    this.#limits = limits;
  }

  /** Spans that were not read. */
  get surplus(): number {
    return Math.max(this.#spans - this.#limits.spans, 0);
  }

  /** False: it is beyond what a request may have, and is not to be read. */
  span(): boolean {
    this.#spans += 1;
    return this.#spans <= this.#limits.spans;
  }

  group(): void {
    this.#groups += 1;
    if (this.#groups > this.#limits.groups)
      throw tooMany(`more than ${this.#limits.groups} resources and scopes, which is more than its spans can need`);
  }

  /** A span or a resource begins. */
  part(): void {
    this.#ofPart = 0;
  }

  values(count = 1): void {
    this.#values += count;
    this.#ofPart += count;
    if (this.#ofPart > this.#limits.valuesOfPart)
      throw tooMany(`a part with more than ${this.#limits.valuesOfPart} attributes, values, events and links`);
    if (this.#values > this.#limits.values)
      throw tooMany(
        `more than ${this.#limits.values} attributes, values, events and links, which is one for each ${bytesPerValue} bytes that it may have`,
      );
  }

  attributesOf(what: 'span' | 'resource', count: number): void {
    if (count > this.#limits.attributesPerSpan)
      throw tooMany(`a ${what} with more than ${this.#limits.attributesPerSpan} attributes`);
  }
}
