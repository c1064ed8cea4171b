import type { ErrorCode } from './errors.ts';

/** Why a run failed, by the problem code with which a JSON caller gets it. */
export const codesByErrorClass = {
  Unknown: 'internal',
  ProviderError: 'provider-error',
  ProviderUnavailable: 'provider-unavailable',
  RateLimited: 'provider-rate-limited',
  QuotaExceeded: 'run-budget-exceeded',
  ContentFiltered: 'content-filtered',
  ContentBlocked: 'content-blocked',
  ToolError: 'tool-failed',
  ToolTimeout: 'tool-timeout',
  Timeout: 'provider-timeout',
  CompilationFailed: 'agent-not-compilable',
  Canceled: 'run-canceled',
  StructuredResponseInvalid: 'structured-response-invalid',
  Infrastructure: 'internal',
} as const satisfies Record<string, ErrorCode>;

export type RunErrorClass = keyof typeof codesByErrorClass;
export const runErrorClasses = Object.keys(codesByErrorClass) as RunErrorClass[];

/**
 * Warnings on an answer that was given although the store failed: quota counters could not be read; the run is not
 * counted in the store yet; its record is missing or incomplete.
 */
export const runWarnings = ['quota-not-checked', 'quota-not-written', 'recording-incomplete'] as const;
export type RunWarning = (typeof runWarnings)[number];

/** The events that end a log. A run has exactly one of them, and it is last. */
export const terminalEvents: ReadonlySet<string> = new Set([
  'run.completed',
  'run.failed',
  'run.canceled',
  'run.awaiting-input',
  'run.awaiting-approval',
]);
