/** `skip`: nothing was tried, and the message says why, or what tries it. */
export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skip';

/** One thing that `acp doctor` reports on. */
export interface Finding {
  readonly status: FindingStatus;
  readonly check: string;
  readonly message: string;
}
