export interface ScriptProblem {
  readonly file: string;
  /** From 1; null when the file as a whole is meant. */
  readonly line: number | null;
  /** Path of the field, such as `rules[2].reply.delay`; empty for the whole file. */
  readonly field: string;
  readonly message: string;
}

const describe = (problem: ScriptProblem): string => {
  const place = problem.line === null ? problem.file : `${problem.file}:${problem.line}`;
  return `${place}${problem.field === '' ? '' : ` ${problem.field}`}: ${problem.message}`;
};

/** A script that cannot be used. Holds every problem, in the order of the file. */
export class ScriptError extends Error {
  readonly problems: readonly ScriptProblem[];

  constructor(problems: readonly ScriptProblem[], options?: ErrorOptions) {
    super(problems.map(describe).join('\n'), options);
    this.name = 'ScriptError';
    this.problems = problems;
  }
}
