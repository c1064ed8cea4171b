/** One definition of a file that may hold several, not yet checked. */
export interface DefinitionDocument {
  readonly file: string;
  /** Line, from 1, on which the document's content begins. */
  readonly line: number;
  readonly value: Readonly<Record<string, unknown>>;
  /** Line of a member such as `model.fallbacks[1].provider`, or of the nearest thing around it. */
  lineOf(path: string): number;
}

/** One reason why a definition, or a whole file of them, cannot be used. */
export interface DefinitionProblem {
  readonly file: string;
  /** Null when the problem is about the file as a whole. */
  readonly line: number | null;
  /** Name of the definition when it is known. */
  readonly name: string | null;
  /** Member path; empty for the whole definition or file. */
  readonly field: string;
  readonly message: string;
}

/** `agents/support.yaml:12 (support): toolNames[0]: There is no tool "find".` */
export const describeDefinitionProblem = (problem: DefinitionProblem): string => {
  const place = problem.line === null ? problem.file : `${problem.file}:${problem.line}`;
  const name = problem.name === null ? '' : ` (${problem.name})`;
  const field = problem.field === '' ? '' : `${problem.field}: `;
  return `${place}${name}: ${field}${problem.message}`;
};

export interface DefinitionDocuments {
  readonly documents: readonly DefinitionDocument[];
  readonly problems: readonly DefinitionProblem[];
}

/** Reads a text of YAML documents. Never throws: what cannot be read is a problem. */
export type DefinitionParser = (text: string, file: string) => DefinitionDocuments;
