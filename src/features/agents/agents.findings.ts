import type { FieldError } from '../../contract/errors.ts';

export const findingCodes = [
  'invalid-name',
  'too-long',
  'value-out-of-range',
  'duplicate-entry',
  'unknown-field',
  'provider-not-registered',
  'provider-not-allowed',
  'feature-not-available',
  'model-not-in-catalog',
  'invalid-provider-setting',
  'tool-not-found',
  'mcp-unreachable',
  'mcp-server-not-found',
  'invalid-mcp-resource',
  'skill-not-found',
  'skill-disabled',
  'too-many-skills',
  'agent-not-found',
  'tool-name-collision',
  'call-cycle',
  'graph-too-deep',
  'child-needs-approval',
  'shared-instructions-not-found',
  'invalid-parameter',
  'undeclared-placeholder',
  'unused-parameter',
  'invalid-culture',
  'invalid-response-format',
  'structured-output-unsupported',
  'invalid-compaction',
  'invalid-memory',
  'invalid-harness',
  'feature-conflict',
  'loop-criterion-not-found',
  'vector-search-unavailable',
] as const;
export type FindingCode = (typeof findingCodes)[number];

/** One thing that the rules have to say about a definition. Errors keep it from being saved and from compiling. */
export interface Finding {
  readonly severity: 'Error' | 'Warning';
  readonly code: FindingCode;
  /** A sentence that stands without the path. */
  readonly message: string;
  /** Member path such as `toolNames[2]`. */
  readonly path: string;
}

export const error = (code: FindingCode, path: string, message: string): Finding => ({
  severity: 'Error',
  code,
  message,
  path,
});

/** What is wrong where the rule does not hold. */
export const errorUnless = (holds: boolean, ...finding: Parameters<typeof error>): Finding[] =>
  holds ? [] : [error(...finding)];

export const warning = (code: FindingCode, path: string, message: string): Finding => ({
  severity: 'Warning',
  code,
  message,
  path,
});

export const isError = (finding: Finding): boolean => finding.severity === 'Error';

// A hostile body of 1 MiB can be wrong in a hundred thousand places; nobody reads that many.
const maxFindings = 1000;

/** At most a thousand, the errors first when some must go. */
export const boundedFindings = (findings: readonly Finding[]): readonly Finding[] =>
  findings.length <= maxFindings
    ? findings
    : [...findings.filter(isError), ...findings.filter((finding) => !isError(finding))].slice(0, maxFindings);

/** The errors among the findings as members of a problem. */
export const fieldErrors = (findings: readonly Finding[]): FieldError[] =>
  findings.filter(isError).map(({ path, message }) => ({ path, message }));

const longestQuote = 128;

/** A caller's word inside a message, cut where it stops helping. */
export const quoted = (word: string): string =>
  JSON.stringify(word.length > longestQuote ? `${word.slice(0, longestQuote)}…` : word);
