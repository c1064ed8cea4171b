interface ErrorEntry {
  readonly status: number;
  readonly title: string;
  /** Process exit code of the CLI. 1 is left for errors that the table does not have. */
  readonly exit: number;
}

const entry = (status: number, title: string, exit: number): ErrorEntry => ({ status, title, exit });

/**
 * Every error of the service: code → HTTP status, title, CLI exit code.
 * Exit codes: 2 bad input, 3 credential or authority, 4 not found, 5 conflict, 6 limit, 7 provider or tool, 8 unavailable, 9 not in this build,
 * 12 no store. 10 and 11 are results of commands.
 */
export const errorTable = {
  'validation-failed': entry(400, 'The request is not valid', 2),
  'request-malformed': entry(400, 'The request is not valid HTTP', 2),
  'malformed-json': entry(400, 'The body is not valid JSON', 2),
  'resource-not-listed': entry(400, 'The MCP server lists no such resource', 2),
  'definition-invalid': entry(400, 'The agent definition is not valid', 2),
  'name-mismatch': entry(400, 'The names in path and body differ', 2),
  'interpreter-not-registered': entry(400, 'A script has no interpreter', 2),
  'expires-at-not-in-future': entry(400, 'The expiry is not in the future', 2),
  'configuration-key-not-allowed': entry(400, 'The configuration key is not allowed', 2),
  'provider-not-allowed': entry(400, 'The tenant may not call the provider', 2),
  'target-not-allowed': entry(400, 'The target address is not allowed', 2),
  'message-required': entry(400, 'A message is required', 2),
  'stream-not-possible': entry(400, 'This request cannot be streamed', 2),
  'parameter-invalid': entry(400, 'A parameter is not valid', 2),
  'attribution-invalid': entry(400, 'The attribution of the run is not valid', 2),
  'sequence-out-of-range': entry(400, 'The session has no such message', 2),
  'attachment-not-found': entry(400, 'An attachment was not found', 2),
  'file-required': entry(400, 'One file is required', 2),
  'file-empty': entry(400, 'The file is empty', 2),
  'multipart-malformed': entry(400, 'The multipart body is not valid', 2),
  'approval-unknown': entry(400, 'An approval request is unknown', 2),
  'approvals-missing': entry(400, 'A decision on an approval request is missing', 2),
  'tool-results-missing': entry(400, 'The result of a client-side tool call is missing', 2),
  'tool-call-unknown': entry(400, 'A tool call is unknown', 2),
  'not-for-queued-runs': entry(400, 'Not allowed in a queued run', 2),
  'client-tools-need-a-client': entry(400, 'Client-side tools need a connected client', 2),
  'agent-not-compilable': entry(400, 'The agent does not compile', 2),
  'context-window-exceeded': entry(400, 'The prompt is larger than the context window', 6),
  'bundle-invalid': entry(400, 'The run bundle cannot be read', 2),
  'replay-not-supported': entry(400, 'The run cannot be replayed in this way', 2),
  'trigger-payload-invalid': entry(400, 'The call has no message for its target', 2),
  'idempotency-key-invalid': entry(400, 'The idempotency key is not valid', 2),
  'unsupported-parameter': entry(400, 'A property is not supported', 2),
  'missing-required-parameter': entry(400, 'A required property is missing', 2),
  'unknown-retention-target': entry(400, 'There is no such retention target', 2),
  'ambiguous-credentials': entry(400, 'The request has two credentials', 3),
  'invalid-tenant': entry(400, 'The tenant is not valid', 2),
  unauthenticated: entry(401, 'A valid credential is required', 3),
  'insufficient-role': entry(403, 'The role is too low', 3),
  'insufficient-scope': entry(403, 'A scope is missing', 3),
  'remote-access-denied': entry(403, 'Remote access is off', 3),
  'origin-denied': entry(403, 'The origin or host is not allowed', 3),
  'tenant-mismatch': entry(403, 'The credential belongs to another tenant', 3),
  'tenant-rejected': entry(403, 'The tenant is not allowed', 3),
  'authority-not-held': entry(403, 'The caller cannot grant authority that it lacks', 3),
  'run-not-allowed': entry(403, 'The run is not allowed', 3),
  'session-owner-required': entry(403, 'A session needs an owner', 3),
  'session-not-owned': entry(403, 'The session belongs to another owner', 3),
  'not-found': entry(404, 'Not found', 4),
  'agent-not-found': entry(404, 'The agent was not found', 4),
  'skill-not-found': entry(404, 'The skill was not found', 4),
  'run-not-found': entry(404, 'The run was not found', 4),
  'run-input-not-recorded': entry(404, 'The input of the run was not recorded', 4),
  'trace-not-found': entry(404, 'The run has no stored trace', 4),
  'score-not-found': entry(404, 'The score was not found', 4),
  'retention-policy-not-found': entry(404, 'The target has no policy', 4),
  'session-not-found': entry(404, 'The session was not found', 4),
  'unknown-url': entry(404, 'There is no such URL', 4),
  'response-not-found': entry(404, 'The response was not found', 4),
  'previous-response-not-found': entry(404, 'The previous response was not found', 4),
  'conversation-not-found': entry(404, 'The conversation was not found', 4),
  'item-not-found': entry(404, 'The item was not found', 4),
  'version-not-found': entry(404, 'The version was not found', 4),
  'method-not-allowed': entry(405, 'The method is not allowed for this URL', 2),
  'not-acceptable': entry(406, 'No acceptable media type', 2),
  'request-timeout': entry(408, 'The request did not arrive in time', 2),
  'agent-name-taken': entry(409, 'The agent name is in use', 5),
  'agent-code-defined': entry(409, 'The agent is defined in code', 5),
  'skill-code-defined': entry(409, 'The skill is defined by the host', 5),
  'script-execution-disabled': entry(409, 'Skill scripts are switched off', 5),
  'version-conflict': entry(409, 'The version has changed', 5),
  'session-agent-mismatch': entry(409, 'The session belongs to another agent', 5),
  'session-busy': entry(409, 'The session has a run in progress', 5),
  'session-exists': entry(409, 'The session id is in use', 5),
  'session-queue-full': entry(409, 'Too many runs wait for the session', 5),
  'session-conflict': entry(409, 'The session has changed', 5),
  'run-not-on-this-instance': entry(409, 'The run does not execute on this instance', 5),
  'run-finished': entry(409, 'The run has finished', 5),
  'run-not-finished': entry(409, 'The run is not finished', 5),
  'replay-needs-approval': entry(409, 'The agent has a tool that needs approval', 5),
  'replay-client-tools': entry(409, 'The agent has a client-side tool', 5),
  'run-canceled': entry(409, 'The run was canceled', 5),
  'approval-pending': entry(409, 'The session waits for an approval', 5),
  'approval-already-decided': entry(409, 'The approval is already decided', 5),
  'approval-expired': entry(409, 'The approval has expired', 5),
  'tool-call-answered': entry(409, 'The tool call already has a result', 5),
  'job-not-cancelable': entry(409, 'The job has ended', 5),
  'webhook-disabled': entry(409, 'The webhook is disabled', 5),
  'mcp-authorization-required': entry(409, 'The MCP server requires the authorization of this service', 5),
  'mcp-server-disabled': entry(409, 'The MCP server is disabled', 5),
  'mcp-catalog-changed': entry(409, 'The listing of the MCP server has changed', 5),
  'remote-card-changed': entry(409, 'The card of the remote agent has changed', 5),
  'oauth-not-enabled': entry(409, 'OAuth is not enabled for the MCP server', 5),
  'oauth-callback-not-configured': entry(409, 'The OAuth callback address is not set', 5),
  'oauth-client-missing': entry(409, 'This service is not a client of the authorization server', 5),
  'data-subject-resolver-missing': entry(409, 'No module resolves data subjects', 5),
  'data-subject-active': entry(409, 'The data subject has runs in progress', 5),
  'trigger-target-missing': entry(409, 'The target of the trigger was removed', 5),
  'trigger-replayed': entry(409, 'The call was accepted before', 5),
  'idempotency-in-progress': entry(409, 'The first request is still in progress', 5),
  'payload-too-large': entry(413, 'The body is too large', 2),
  'body-too-large': entry(413, 'The body of the call is too large', 2),
  'attachment-too-large': entry(413, 'The attachment is too large', 2),
  'media-type-not-allowed': entry(415, 'The type of the file is not allowed', 2),
  'unsupported-media-type': entry(415, 'The media type is not supported', 2),
  'content-blocked': entry(422, 'Content blocked', 6),
  'content-filtered': entry(422, 'The provider filtered the content', 6),
  'run-budget-exceeded': entry(422, 'The budget of the run tree is used up', 6),
  'replay-result-missing': entry(422, 'The recording has no result for a call', 6),
  'idempotency-key-reused': entry(422, 'The idempotency key belongs to another request', 2),
  'quota-exceeded': entry(429, 'Quota exceeded', 6),
  'rate-limited': entry(429, 'Too many requests', 6),
  'too-many-streams': entry(429, 'Too many streams are open', 6),
  'trigger-rate-limited': entry(429, 'Too many calls of the trigger', 6),
  'headers-too-large': entry(431, 'The headers are too large', 2),
  internal: entry(500, 'Internal error', 1),
  'decryption-failed': entry(500, 'Stored content cannot be decrypted', 8),
  'idempotency-disabled': entry(501, 'Idempotency keys are switched off', 9),
  'branch-not-supported': entry(501, 'This store cannot branch sessions', 9),
  'async-runs-disabled': entry(501, 'Queued runs are switched off', 9),
  'scheduling-disabled': entry(501, 'The job queue is switched off', 9),
  'run-recording-disabled': entry(501, 'Run recording is switched off', 9),
  'persistent-store-required': entry(501, 'Not available with a store in memory', 9),
  'mcp-disabled': entry(501, 'MCP is switched off', 9),
  'feature-not-available': entry(501, 'Not available in this build', 9),
  'provider-error': entry(502, 'The model provider failed', 7),
  'provider-unavailable': entry(502, 'The model provider is not available', 7),
  'provider-rate-limited': entry(502, 'The rate limit of the model provider is exceeded', 7),
  'provider-timeout': entry(502, 'The model provider did not respond in time', 7),
  'structured-response-invalid': entry(502, 'The response does not have the requested format', 7),
  'mcp-server-failed': entry(502, 'The MCP server failed', 7),
  'remote-agent-failed': entry(502, 'The remote agent has no usable card', 7),
  'tool-failed': entry(502, 'A tool failed', 7),
  'tool-timeout': entry(502, 'A tool did not respond in time', 7),
  draining: entry(503, 'The service is stopping', 8),
  'emergency-stopped': entry(503, 'Stopped by an operator', 8),
  'store-unavailable': entry(503, 'The store is not available', 8),
  'data-subject-resolver-failed': entry(503, 'The data-subject resolver failed', 8),
  'audit-unavailable': entry(503, 'The audit trail cannot be written', 8),
  'identity-unavailable': entry(503, 'The caller cannot be identified now', 8),
  migrating: entry(503, 'The store is not migrated', 8),
  'cannot-connect': entry(503, 'The service cannot be reached', 8),
  'store-missing': entry(503, 'There is no store', 12),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof errorTable;

export interface FieldError {
  /** Member path, `model.provider` or `toolNames[2]`; empty for the whole body. */
  readonly path: string;
  readonly message: string;
}

/** What a model provider called a refused call, and the request under which the log has its text. */
export interface ProviderNames {
  /** Identifiers of the provider, of A-Z a-z 0-9 _ . -; null: it gave none. */
  readonly code: string | null;
  readonly type: string | null;
  readonly param: string | null;
  readonly requestId: string;
}

/** Extension members of the problem that say more than the code. */
export interface ErrorDetails {
  readonly errors?: readonly FieldError[];
  readonly errorType?: string;
  readonly provider?: ProviderNames;
  /** The guard that blocked, and its rule. */
  readonly guardName?: string;
  readonly ruleName?: string;
  readonly retryAfterMs?: number;
  readonly missingVersion?: number;
  readonly estimatedTokens?: number;
  readonly allowedTokens?: number;
  readonly quotaMetric?: 'Runs' | 'Tokens' | 'Cost';
  readonly quotaPeriod?: 'Daily' | 'Monthly';
  readonly quotaLimit?: number;
  readonly quotaUsed?: number;
  readonly quotaResetsAt?: string;
  readonly requiredRole?: string;
  readonly requiredScope?: string;
  /** What a command says instead of the hint of its code. */
  readonly hint?: string;
  /** Runs that stand in the way. */
  readonly runIds?: readonly string[];
  /** Run the problem belongs to; sent as `X-Run-Id`. */
  readonly runId?: string;
}

/** The one error that crosses layers: the message is public, the cause only goes to the log. */
export class AcpError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: ErrorDetails } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AcpError';
    this.code = code;
    this.details = options.details ?? {};
  }

  get status(): number {
    return errorTable[this.code].status;
  }
}

/** What is wrong with one member of a request; the message follows its path. */
export const invalidField = (path: string, message: string, code: ErrorCode = 'validation-failed'): AcpError =>
  new AcpError(code, `${path} ${message}.`, { details: { errors: [{ path, message }] } });

/** Whether an error is how a run failed: the end of the run has its line in the log, and no other line need say it. */
export const isRunFailure = (error: unknown): boolean =>
  error instanceof AcpError && error.details.runId !== undefined && error.details.errorType !== undefined;

/** Problem details (RFC 9457) with the service's extensions. */
export interface Problem extends ErrorDetails {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly instance: string;
  readonly code: string;
  readonly requestId: string;
}

export const toProblem = (error: AcpError, instance: string, requestId: string): Problem => {
  const { runId: _runId, ...extensions } = error.details;
  return {
    type: `urn:acp:problem:${error.code}`,
    title: errorTable[error.code].title,
    status: error.status,
    detail: error.message,
    instance,
    code: error.code,
    requestId,
    ...extensions,
  };
};

export const isErrorCode = (value: unknown): value is ErrorCode =>
  typeof value === 'string' && Object.hasOwn(errorTable, value);
