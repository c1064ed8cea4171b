/**
 * `target-not-allowed`: the address rules refuse it. `unresolved`: the name has no address. `unreachable`: no
 * connection, or it broke. `timed-out`, `canceled`: by the caller's limit or signal. `response-too-large`: more bytes
 * than asked for. `invalid-request`: it cannot be sent as it is.
 */
export type OutboundErrorCode =
  | 'target-not-allowed'
  | 'unresolved'
  | 'unreachable'
  | 'timed-out'
  | 'canceled'
  | 'response-too-large'
  | 'invalid-request';

const messages: Readonly<Record<OutboundErrorCode, string>> = {
  'target-not-allowed': 'The target address is not allowed.',
  unresolved: 'The host name could not be resolved.',
  unreachable: 'The connection failed.',
  'timed-out': 'There was no answer in time.',
  canceled: 'The request was canceled.',
  'response-too-large': 'The answer is too large.',
  'invalid-request': 'The request could not be sent.',
};

/** A request that got no complete answer. The message names neither host nor address; the cause is for the log. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode;

  constructor(code: OutboundErrorCode, cause?: unknown) {
    super(messages[code], cause === undefined ? undefined : { cause });
    this.name = 'OutboundError';
    this.code = code;
  }
}
