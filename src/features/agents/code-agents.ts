import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type DefinitionDocument,
  type DefinitionParser,
  type DefinitionProblem,
  describeDefinitionProblem,
} from '../../contract/definition-document.ts';
import { compileChecker } from '../../core/validate.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { reachAgents } from './agents.catalog.ts';
import { compileAgent } from './agents.compile.ts';
import { type AgentContent, agentContent } from './agents.content.ts';
import { type Finding, isError } from './agents.findings.ts';
import type { AgentReferences } from './agents.rules.ts';
import { AgentDefinitionRequest } from './agents.schema.ts';
import { unknownFieldFindings } from './unknown-fields.rules.ts';

/** The agents that the host defines: fixed until restart, the same for every tenant. */
export interface CodeAgents {
  readonly contents: ReadonlyMap<string, AgentContent>;
  readonly compiled: ReadonlyMap<string, CompiledAgent>;
  /** What does not stop the start and is worth a line in the log. */
  readonly warnings: readonly DefinitionProblem[];
}

export const noCodeAgents: CodeAgents = { contents: new Map(), compiled: new Map(), warnings: [] };

/** Thrown at start with every problem of all definitions. */
export class CodeAgentsError extends Error {
  readonly problems: readonly DefinitionProblem[];

  constructor(problems: readonly DefinitionProblem[]) {
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
    const lines = problems.map((problem) => `  ${describeDefinitionProblem(problem)}`);
    super([`The agents of the host have ${count}:`, ...lines].join('\n'));
    this.name = 'CodeAgentsError';
    this.problems = problems;
  }
}

export interface CodeAgentDeps extends AgentReferences {
  readonly parse: DefinitionParser;
}

interface Sources {
  readonly documents: DefinitionDocument[];
  readonly problems: DefinitionProblem[];
}

const fileProblem = (file: string, message: string): DefinitionProblem => ({
  file,
  line: null,
  name: null,
  field: '',
  message,
});

const isDefinitionFile = (name: string): boolean => /\.(?:ya?ml|json)$/i.test(name);

/** A file as it is; of a folder every YAML and JSON file below it by name, but nothing hidden. */
const filesOf = async (path: string): Promise<string[]> => {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const shown = entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
  const files: string[] = [];
  for (const entry of shown) {
    if (entry.isDirectory()) files.push(...(await filesOf(join(path, entry.name))));
    else if (isDefinitionFile(entry.name)) files.push(join(path, entry.name));
  }
  return files;
};

const errorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unreadable';

const readSources = async (paths: readonly string[], parse: DefinitionParser): Promise<Sources> => {
  const sources: Sources = { documents: [], problems: [] };
  for (const path of paths) {
    try {
      for (const file of await filesOf(path)) {
        const parsed = parse(await readFile(file, 'utf8'), file);
        sources.documents.push(...parsed.documents);
        sources.problems.push(...parsed.problems);
      }
    } catch (error) {
      sources.problems.push(fileProblem(path, `The file or folder cannot be read (${errorCode(error)}).`));
    }
  }
  return sources;
};

interface CodeDefinition {
  readonly document: DefinitionDocument;
  readonly content: AgentContent;
  readonly unknown: readonly Finding[];
}

const givenName = ({ value }: DefinitionDocument): string | null =>
  typeof value['name'] === 'string' ? value['name'] : null;

const located = (document: DefinitionDocument, field: string, message: string): DefinitionProblem => ({
  file: document.file,
  line: document.lineOf(field),
  name: givenName(document),
  field,
  message,
});

/** Keeps the documents that have the shape of a definition and a name of their own. */
const readable = ({ documents, problems }: Sources): ReadonlyMap<string, CodeDefinition> => {
  const checker = compileChecker(AgentDefinitionRequest);
  const definitions = new Map<string, CodeDefinition>();
  for (const document of documents) {
    const value = checker.normalize(document.value);
    if (!checker.check(value)) {
      problems.push(
        ...checker.errors(value).map(({ path, message }) => located(document, path, `The value ${message}.`)),
      );
      continue;
    }
    const content = agentContent(value as AgentDefinitionRequest);
    const first = definitions.get(content.name);
    if (first !== undefined) {
      const place = `${first.document.file}:${first.document.line}`;
      problems.push(located(document, 'name', `The name is taken by the agent in ${place}.`));
      continue;
    }
    definitions.set(content.name, { document, content, unknown: unknownFieldFindings(value) });
  }
  return definitions;
};

/**
 * Reads and compiles the agents of `Host:Agents`: files, or folders of `.yaml`, `.yml` and `.json` files, many
 * documents each. They may call and share instructions with one another, not with stored agents, which belong to
 * tenants. Throws CodeAgentsError with all problems of all files.
 */
export const loadCodeAgents = async (paths: readonly string[], deps: CodeAgentDeps): Promise<CodeAgents> => {
  const sources = await readSources(paths, deps.parse);
  const definitions = readable(sources);
  const contents = new Map([...definitions].map(([name, { content }]) => [name, content]));
  const compiled = new Map<string, CompiledAgent>();
  const warnings: DefinitionProblem[] = [];
  for (const [name, { document, content, unknown }] of definitions) {
    const agents = await reachAgents(content, async (names) => {
      const known = names.map((callee): [string, AgentContent | undefined] => [callee, contents.get(callee)]);
      return new Map(known.filter((entry): entry is [string, AgentContent] => entry[1] !== undefined));
    });
    const { agent, findings } = compileAgent({ content, version: 1, origin: 'code' }, agents, deps);
    for (const finding of [...unknown, ...findings])
      (isError(finding) ? sources.problems : warnings).push(located(document, finding.path, finding.message));
    if (agent !== null) compiled.set(name, agent);
  }
  if (sources.problems.length > 0) throw new CodeAgentsError(sources.problems);
  return { contents, compiled, warnings };
};
