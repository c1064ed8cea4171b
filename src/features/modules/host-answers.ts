import { AcpError } from '../../contract/errors.ts';

/** How long the host's code has for an answer. A broken policy must neither open the service nor hold up requests. */
export const answerWithinMs = 5000;

/** How the host's code failed, as a line of the log tells it. */
export const failureOf = (end: {
  readonly kind: string;
  readonly error?: unknown;
}): Readonly<Record<string, unknown>> => (end.kind === 'threw' ? { err: end.error } : { timeoutMs: answerWithinMs });

export const identityUnavailable = (message: string): AcpError =>
  new AcpError('identity-unavailable', message, { details: { retryAfterMs: 5000 } });
