/** Members and indexes from the root of a tool's declaration, such as `['inputSchema', 'properties', 'city']`. */
export type FieldPath = readonly (string | number)[];

/** `request.headers.Accept`, `tools[0].name`; empty for the whole declaration. */
export const formatPath = (path: FieldPath): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? part : `${text}.${part}`;
  }, '');

/** A mistake in a declaration, before its place is known. */
export interface FieldProblem {
  readonly path: FieldPath;
  readonly message: string;
}

/** Where a declaration stands. Lines count from 1; null where there are none, as in a module. */
export interface ToolPlace {
  readonly file: string;
  readonly line: number | null;
}

/** One reason why the service does not start. */
export interface ToolProblem extends ToolPlace {
  /** Name of the tool when it is known. */
  readonly tool: string | null;
  /** Member path; empty for the whole file or tool. */
  readonly field: string;
  readonly message: string;
}

/** `tools/weather.yaml:12 (weather): request.url must be …`. */
export const describeToolProblem = (problem: ToolProblem): string => {
  const place = problem.line === null ? problem.file : `${problem.file}:${problem.line}`;
  const tool = problem.tool === null ? '' : ` (${problem.tool})`;
  const field = problem.field === '' ? '' : `${problem.field} `;
  return `${place}${tool}: ${field}${problem.message}`;
};

/** Thrown at start with every problem of all modules and declared tools. */
export class ToolProblemsError extends Error {
  readonly problems: readonly ToolProblem[];

  constructor(problems: readonly ToolProblem[]) {
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
    super([`The tools have ${count}:`, ...problems.map((problem) => `  ${describeToolProblem(problem)}`)].join('\n'));
    this.name = 'ToolProblemsError';
    this.problems = problems;
  }
}
