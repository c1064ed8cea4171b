import { OutboundError, type OutboundErrorCode } from '../http/outbound-error.ts';

/**
 * `no-answer`: none came, or it broke off; `outbound` says how. `http`: an answer outside 2xx without an error of the
 * protocol. `rpc`: an error of the protocol. `broken`: an answer that is none. `no-common-version`: the server speaks no
 * revision that is spoken here. `unauthorized`: it wants another credential. `missing-credential`: there is none to send.
 */
export type McpFailureKind =
  | 'no-answer'
  | 'http'
  | 'rpc'
  | 'broken'
  | 'no-common-version'
  | 'unauthorized'
  | 'missing-credential';

interface McpFailureParts {
  readonly status?: number | undefined;
  readonly code?: number | undefined;
  readonly data?: unknown;
  /** Of a refused credential: `WWW-Authenticate`. */
  readonly challenge?: string | undefined;
  readonly cause?: unknown;
}

const messages: Readonly<Record<McpFailureKind, string>> = {
  'no-answer': 'The server did not answer.',
  http: 'The server answered with an HTTP status that is no success.',
  rpc: 'The server answered with an error.',
  broken: 'The server gave no valid answer.',
  'no-common-version': 'The server speaks no revision of the protocol that is spoken here.',
  unauthorized: 'The server asks for another credential.',
  'missing-credential': 'The credential has no value.',
};

/** A request to an MCP server that got no result. What the server said is the cause, for the log alone. */
export class McpFailure extends Error {
  readonly kind: McpFailureKind;
  readonly status: number | null;
  /** Of an `rpc` failure. */
  readonly code: number | null;
  readonly data: unknown;
  readonly challenge: string | null;

  constructor(kind: McpFailureKind, { status, code, data, challenge, cause }: McpFailureParts = {}) {
    super(messages[kind], cause === undefined ? undefined : { cause });
    this.name = 'McpFailure';
    this.kind = kind;
    this.status = status ?? null;
    this.code = code ?? null;
    this.data = data;
    this.challenge = challenge ?? null;
  }

  /** How no answer came about; null for other kinds. */
  get outbound(): OutboundErrorCode | null {
    return this.cause instanceof OutboundError ? this.cause.code : null;
  }
}

/** A JSON-RPC code or an HTTP status, which is all that a server's failure may say beyond this process; null: it gave none. */
export const failureNumber = ({ kind, code, status }: McpFailure): number | null => {
  if (kind === 'rpc') return code;
  return kind === 'http' || kind === 'unauthorized' ? status : null;
};

/** For `error.type` of spans and metrics. */
export const failureType = (failure: McpFailure): string =>
  String(failureNumber(failure) ?? failure.outbound ?? failure.kind);
