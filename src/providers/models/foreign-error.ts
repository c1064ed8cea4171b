/** A provider's own words, cut to a length fit for a log line. They never leave the log. */
export class ForeignError extends Error {
  readonly status: number | null;

  constructor(text: string, status: number | null) {
    super(text.slice(0, 2000));
    this.name = 'ForeignError';
    this.status = status;
  }
}
