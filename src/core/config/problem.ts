import { type ConfigSource, describeSource } from './raw-value.ts';

export type ConfigProblemCode =
  | 'file-unreadable'
  | 'syntax'
  | 'unknown-key'
  | 'invalid-value'
  | 'missing-value'
  | 'unresolved-reference'
  | 'feature-not-available'
  | 'conflict'
  | 'insecure';

/** One finding about the configuration. `message` says what was expected and never holds a secret. */
export interface ConfigProblem {
  /** Full key such as `Service:Scheduling:PollInterval`; null when the problem is about a file or a flag as a whole. */
  readonly key: string | null;
  readonly source: ConfigSource;
  readonly code: ConfigProblemCode;
  readonly message: string;
}

/** Names come from outside and end up in a terminal. */
const printable = (text: string): string =>
  text.replace(/\p{Cc}/gu, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

const paragraph = (problem: ConfigProblem): string => {
  const place = describeSource(problem.source);
  const head = problem.key === null ? place : `${problem.key} (${place})`;
  return `  ${printable(head)}\n    ${printable(problem.message)}`;
};

/** One paragraph for each problem: key, source, what was expected. */
export const describeProblems = (problems: readonly ConfigProblem[]): string => problems.map(paragraph).join('\n');

/** Thrown before anything is opened; holds every problem that was found. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];
  readonly warnings: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], warnings: readonly ConfigProblem[] = []) {
    super(`The configuration has ${problems.length === 1 ? 'one problem' : `${problems.length} problems`}`);
    this.name = 'ConfigError';
    this.problems = problems;
    this.warnings = warnings;
  }

  /** The text for a person, several lines without a final line end. */
  report(): string {
    const parts = [`${this.message}:`, describeProblems(this.problems)];
    if (this.warnings.length > 0) parts.push('Warnings:', describeProblems(this.warnings));
    return parts.join('\n');
  }
}
