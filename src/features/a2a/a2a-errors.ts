import { AcpError, type ErrorCode } from '../../contract/errors.ts';
import { RpcError, rpcCodes } from '../../contract/json-rpc.ts';
import type { ProtocolVersion } from './a2a.schema.ts';

const kinds = {
  TaskNotFound: [-32001, 'TASK_NOT_FOUND'],
  TaskNotCancelable: [-32002, 'TASK_NOT_CANCELABLE'],
  PushNotSupported: [-32003, 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
  UnsupportedOperation: [-32004, 'UNSUPPORTED_OPERATION'],
  ContentTypeNotSupported: [-32005, 'CONTENT_TYPE_NOT_SUPPORTED'],
  ExtendedCardNotConfigured: [-32007, 'EXTENDED_AGENT_CARD_NOT_CONFIGURED'],
  ExtensionRequired: [-32008, 'EXTENSION_SUPPORT_REQUIRED'],
  VersionNotSupported: [-32009, 'VERSION_NOT_SUPPORTED'],
  ParseError: [rpcCodes.parseError, 'PARSE_ERROR'],
  /** One object that is no valid request. */
  InvalidRequest: [rpcCodes.invalidRequest, 'INVALID_REQUEST'],
  /** A batch, or a value that cannot be a request. */
  NoRequest: [rpcCodes.invalidRequest, 'INVALID_REQUEST'],
  MethodNotFound: [rpcCodes.methodNotFound, 'METHOD_NOT_FOUND'],
  InvalidParams: [rpcCodes.invalidParams, 'INVALID_PARAMS'],
  Internal: [rpcCodes.internalError, 'INTERNAL_ERROR'],
} as const satisfies Record<string, readonly [number, string]>;

export type A2AErrorKind = keyof typeof kinds;

interface Why {
  /** In place of the kind's own, where a caller can act on it. */
  readonly reason?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** What a caller is told in the words of the protocol. The message is public; its cause goes to the log. */
export class A2AError extends Error {
  readonly kind: A2AErrorKind;
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;

  constructor(kind: A2AErrorKind, message: string, { reason, metadata = {}, cause }: Why = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'A2AError';
    this.kind = kind;
    this.reason = reason ?? kinds[kind][1];
    this.metadata = metadata;
  }

  /** The body is a bad request for HTTP, too: no object could be read of it. */
  get isMalformed(): boolean {
    return this.kind === 'ParseError' || this.kind === 'NoRequest';
  }

  /** As version 1.0 says it, in error details of Google; version 0.3 has no such form. */
  in(version: ProtocolVersion): RpcError {
    const [code] = kinds[this.kind];
    const { reason, metadata, message } = this;
    const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'a2a-protocol.org', metadata };
    return new RpcError(code, message, version === '1.0' ? [info] : { reason, ...metadata }, { cause: this });
  }
}

export const taskNotFound = (id: string): A2AError =>
  new A2AError('TaskNotFound', `Task "${id.slice(0, 128)}" was not found.`);

/** Failures of the service that say more about the request than that it failed. */
const byCode: Partial<Record<ErrorCode, readonly [A2AErrorKind, string?]>> = {
  'run-not-found': ['TaskNotFound'],
  'run-finished': ['TaskNotCancelable'],
  'run-not-on-this-instance': ['TaskNotCancelable', 'OTHER_INSTANCE'],
  'session-busy': ['UnsupportedOperation', 'CONTEXT_BUSY'],
  'session-conflict': ['UnsupportedOperation', 'CONTEXT_BUSY'],
  'approval-pending': ['UnsupportedOperation', 'CONTEXT_BUSY'],
  'session-agent-mismatch': ['InvalidParams', 'CONTEXT_NOT_YOURS'],
  'session-not-owned': ['InvalidParams', 'CONTEXT_NOT_YOURS'],
  'parameter-invalid': ['InvalidParams', 'PARAMETER_INVALID'],
  'context-window-exceeded': ['InvalidParams', 'CONTEXT_WINDOW_EXCEEDED'],
  'attachment-too-large': ['ContentTypeNotSupported', 'ATTACHMENT_TOO_LARGE'],
  'file-empty': ['ContentTypeNotSupported', 'FILE_EMPTY'],
  'media-type-not-allowed': ['ContentTypeNotSupported'],
};

/** Answered as a problem over HTTP: no task exists, and it is not the protocol that says why. */
const isProblem = ({ status }: AcpError): boolean => [401, 403, 404, 406, 413, 415, 429, 501, 503].includes(status);

/**
 * A failure as the protocol tells it; null: it is answered over HTTP. Whatever is not foreseen becomes an internal error
 * with nothing but the id of the request.
 */
export const protocolError = (error: unknown, requestId: string): A2AError | null => {
  if (error instanceof A2AError) return error;
  if (error instanceof AcpError) {
    const known = byCode[error.code];
    if (known !== undefined)
      return new A2AError(known[0], error.message, known[1] === undefined ? {} : { reason: known[1] });
    if (isProblem(error)) return null;
  }
  return new A2AError('Internal', `The service failed. The request is ${requestId}.`, {
    metadata: { requestId },
    cause: error,
  });
};
