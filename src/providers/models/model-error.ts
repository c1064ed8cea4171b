import type { ProviderNames } from '../../contract/errors.ts';

export type ModelErrorClass =
  | 'ProviderError'
  | 'ProviderUnavailable'
  | 'RateLimited'
  | 'Timeout'
  | 'ContentFiltered'
  | 'CompilationFailed'
  | 'Canceled';

export interface ModelErrorDetails {
  readonly provider: string;
  readonly httpStatus?: number | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly reason?: ProviderNames | undefined;
  /** The provider is at fault, though neither the type nor an HTTP status says so. */
  readonly mayFallBack?: true;
  readonly cause?: unknown;
}

interface ErrorTraits {
  readonly class: ModelErrorClass;
  /** Whether a circuit breaker counts it and a fallback may be tried. */
  readonly fault: boolean;
}

/** Types of a failed model call, as they stand in run errors. */
const traits = {
  circuit_open: { class: 'ProviderUnavailable', fault: true },
  provider_unavailable: { class: 'ProviderUnavailable', fault: true },
  provider_error: { class: 'ProviderError', fault: false },
  provider_timeout: { class: 'Timeout', fault: true },
  provider_rate_limited: { class: 'RateLimited', fault: true },
  context_overflow: { class: 'ProviderError', fault: false },
  provider_not_allowed: { class: 'CompilationFailed', fault: true },
  content_filtered: { class: 'ContentFiltered', fault: false },
  provider_credential_unresolved: { class: 'ProviderError', fault: false },
  canceled: { class: 'Canceled', fault: false },
} as const satisfies Readonly<Record<string, ErrorTraits>>;

export type ModelErrorType = keyof typeof traits;
export const modelErrorTypes = Object.keys(traits) as readonly ModelErrorType[];

/**
 * A model call that failed, already translated. The message is the service's own and public;
 * the provider's text is only in `cause`, for the log.
 */
export class ModelCallError extends Error {
  readonly type: ModelErrorType;
  readonly errorClass: ModelErrorClass;
  readonly provider: string;
  readonly httpStatus: number | null;
  readonly retryAfterMs: number | null;
  readonly reason: ProviderNames | null;
  /** True when another provider may be tried: connection failed, timeout, 429, 5xx, bad end, open circuit. */
  readonly mayFallBack: boolean;

  constructor(type: ModelErrorType, message: string, details: ModelErrorDetails) {
    super(message, { cause: details.cause });
    this.name = 'ModelCallError';
    this.type = type;
    this.errorClass = traits[type].class;
    this.provider = details.provider;
    this.httpStatus = details.httpStatus ?? null;
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.reason = details.reason ?? null;
    this.mayFallBack =
      details.mayFallBack === true ||
      traits[type].fault ||
      (details.httpStatus !== undefined && details.httpStatus >= 500);
  }
}
