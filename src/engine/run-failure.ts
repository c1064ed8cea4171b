import { createHash } from 'node:crypto';
import { AcpError, type ErrorCode, type ProviderNames } from '../contract/errors.ts';
import { codesByErrorClass, type RunErrorClass } from '../contract/run-outcome.ts';
import { ModelCallError } from '../providers/models/model-error.ts';

/** Why a run did not complete, in the service's own words. The cause goes to the log only. */
export class RunFailure extends Error {
  readonly errorClass: RunErrorClass;
  readonly type: string;
  readonly retryAfterMs: number | null;
  readonly findings: readonly { readonly path: string; readonly message: string }[] | null;
  /** What the provider called the refusal of a model call. */
  readonly provider: ProviderNames | null;
  /** The guard that blocked, and its rule. */
  readonly guard: { readonly guardName: string; readonly ruleName: string } | null;

  constructor(
    errorClass: RunErrorClass,
    type: string,
    message: string,
    options: {
      cause?: unknown;
      retryAfterMs?: number | null;
      provider?: ProviderNames | null;
      findings?: readonly { readonly path: string; readonly message: string }[];
      guard?: { readonly guardName: string; readonly ruleName: string };
    } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'RunFailure';
    this.errorClass = errorClass;
    this.type = type;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.findings = options.findings ?? null;
    this.provider = options.provider ?? null;
    this.guard = options.guard ?? null;
  }
}

/** Whether a guard ended the run. */
export const isBlocked = (error: unknown): boolean =>
  error instanceof RunFailure && error.errorClass === 'ContentBlocked';

export interface StoredRunError {
  readonly type: string;
  readonly message: string;
  readonly class: RunErrorClass;
  readonly fingerprint: string;
  /** Absent: the run did not fail by a refused model call, or the provider gave no reason. */
  readonly provider?: ProviderNames;
}

// What differs between two occurrences of one fault: quoted names, ids and numbers.
const variable = /"[^"]*"|'[^']*'|[0-9a-f]{8}-[0-9a-f-]{27,}|\d+(\.\d+)?/gi;

/** 16 hex digits that are equal for occurrences of one fault. */
const fingerprint = (errorClass: string, type: string, message: string): string =>
  createHash('sha256')
    .update(`${errorClass}\n${type}\n${message.replace(variable, '')}`)
    .digest('hex')
    .slice(0, 16);

export const toRunFailure = (error: unknown): RunFailure => {
  if (error instanceof RunFailure) return error;
  if (error instanceof ModelCallError)
    return new RunFailure(error.errorClass, error.type, error.message, {
      cause: error,
      retryAfterMs: error.retryAfterMs,
      provider: error.reason,
    });
  // What it was doing is nobody's mistake, and may go through once the store is as it should be.
  if (error instanceof AcpError && error.code === 'store-unavailable')
    return new RunFailure('Infrastructure', 'store_unavailable', error.message, { cause: error });
  return new RunFailure('Unknown', 'internal', 'The run failed because of an internal error.', { cause: error });
};

export const storedError = (failure: RunFailure): StoredRunError => ({
  type: failure.type,
  message: failure.message,
  class: failure.errorClass,
  fingerprint: fingerprint(failure.errorClass, failure.type, failure.message),
  ...(failure.provider === null ? {} : { provider: failure.provider }),
});

const codesByType: Readonly<Record<string, ErrorCode>> = {
  context_overflow: 'context-window-exceeded',
  replay_result_missing: 'replay-result-missing',
  session_conflict: 'session-conflict',
  attachment_not_found: 'attachment-not-found',
  shutdown: 'draining',
  emergency_stop: 'emergency-stopped',
  quota_exceeded: 'quota-exceeded',
  quotas_unreadable: 'store-unavailable',
  not_admitted: 'store-unavailable',
  attachment_unavailable: 'store-unavailable',
  store_unavailable: 'store-unavailable',
};

/** The problem code with which a failed run answers a JSON caller. */
export const problemCode = (errorClass: RunErrorClass, type: string): ErrorCode =>
  codesByType[type] ?? codesByErrorClass[errorClass];
