/**
 * `target-not-allowed`: the address rules refuse it. `unresolved`: the name has no address. `unreachable`: no
 * connection, or it broke. `timed-out`, `canceled`: by the caller's limit or signal. `response-too-large`: more bytes
 * than asked for. `invalid-request`: it cannot be sent as it is.
 */
const messages = {
  'target-not-allowed': 'The target address is not allowed.',
  unresolved: 'The host name could not be resolved.',
  unreachable: 'The connection failed.',
  'timed-out': 'There was no answer in time.',
  canceled: 'The request was canceled.',
  'response-too-large': 'The answer is too large.',
  'invalid-request': 'The request could not be sent.',
} as const;

export type OutboundErrorCode = keyof typeof messages;

/** A request that got no complete answer. The message names neither host nor address; the cause is for the log. */
export class OutboundError extends Error {
  readonly code: OutboundErrorCode;
  /** Of an answer that had begun; null: there was none. */
  status: number | null = null;

  constructor(code: OutboundErrorCode, cause?: unknown) {
    super(messages[code], cause === undefined ? undefined : { cause });
    this.name = 'OutboundError';
    this.code = code;
  }
}

// What Node and OpenSSL call a certificate or a handshake that is not good enough.
const tlsCode =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_|HOSTNAME_MISMATCH|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|EPROTO)/;

/** True: the connection was there, and its other side could not prove who it is or agree on a protocol. */
export const isTlsFailure = (error: OutboundError): boolean => {
  for (let cause = error.cause; cause instanceof Error; cause = cause.cause)
    if ('code' in cause && typeof cause.code === 'string' && tlsCode.test(cause.code)) return true;
  return false;
};
