export type FindingStatus = 'ok' | 'warn' | 'fail';

/** One thing that `acp doctor` has looked at. */
export interface Finding {
  readonly status: FindingStatus;
  readonly check: string;
  readonly message: string;
}
