import { readFile, stat } from 'node:fs/promises';
import {
  type DefinitionDocument,
  type DefinitionParser,
  type DefinitionProblem,
  describeDefinitionProblem,
} from '../../contract/definition-document.ts';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { definitionFilesBelow } from '../../core/documents/definition-files.ts';
import { compileChecker } from '../../core/validate.ts';
import type { CompiledAgent } from '../../engine/compiled-agent.ts';
import { reachWithin } from './agents.catalog.ts';
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
  /** Findings that are logged and do not stop the start. */
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
  /** Definitions that modules bring, by the module's file. */
  readonly modules?: readonly ModuleAgents[];
}

/** The `agents` of one module, as the module has them. */
export interface ModuleAgents {
  readonly file: string;
  readonly value: readonly Readonly<Record<string, unknown>>[];
}

/** A definition with its place: a document of a file, or an entry of a module, which has no lines. */
interface SourceDocument extends Pick<DefinitionDocument, 'file' | 'value'> {
  readonly line: number | null;
  /** Path of the entry in its module. */
  readonly entry?: string;
  lineOf(path: string): number | null;
}

interface Sources {
  readonly documents: SourceDocument[];
  readonly problems: DefinitionProblem[];
}

const errorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unreadable';

const readSources = async (paths: readonly string[], parse: DefinitionParser): Promise<Sources> => {
  const sources: Sources = { documents: [], problems: [] };
  const report = (file: string, error: unknown) => {
    const message = `The file or folder cannot be read (${errorCode(error)}).`;
    sources.problems.push({ file, line: null, name: null, field: '', message });
  };
  for (const path of paths) {
    try {
      const files = (await stat(path)).isDirectory() ? await definitionFilesBelow(path, report) : [path];
      for (const file of files) {
        const parsed = parse(await readFile(file, 'utf8'), file);
        sources.documents.push(...parsed.documents);
        sources.problems.push(...parsed.problems);
      }
    } catch (error) {
      report(path, error);
    }
  }
  return sources;
};

interface CodeDefinition {
  readonly document: SourceDocument;
  readonly content: AgentContent;
  readonly unknown: readonly Finding[];
}

const located = (document: SourceDocument, field: string, message: string): DefinitionProblem => {
  const { name: stated } = document.value;
  const name = typeof stated === 'string' ? stated : null;
  // Without a name only its place in the list tells which definition of a module it is.
  const place = [name === null ? document.entry : '', field].filter(Boolean).join('.');
  return { file: document.file, line: document.lineOf(field), name, field: place, message };
};

const placeOf = ({ file, line }: SourceDocument): string => (line === null ? file : `${file}:${line}`);

/** A copy that the module cannot change any more; members in their order, which models see in schemas. */
const plainCopy = (value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> => {
  // Throws for what JSON cannot hold, which JSON.stringify would leave out without a word.
  canonicalJson(value as Json);
  return JSON.parse(JSON.stringify(value)) as Readonly<Record<string, unknown>>;
};

const addModuleAgents = (sources: Sources, modules: readonly ModuleAgents[]): void => {
  for (const { file, value: definitions } of modules)
    for (const [index, definition] of definitions.entries()) {
      const document = { file, line: null, entry: `agents[${index}]`, value: definition, lineOf: () => null };
      if (typeof definition['run'] === 'function') {
        const message = 'An agent that runs code of its own is not available; an agent has a model binding.';
        sources.problems.push(located(document, 'run', message));
        continue;
      }
      try {
        sources.documents.push({ ...document, value: plainCopy(definition) });
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        sources.problems.push(located(document, '', `The definition is no JSON value: ${reason}.`));
      }
    }
};

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
      problems.push(located(document, 'name', `The name is taken by the agent in ${placeOf(first.document)}.`));
      continue;
    }
    definitions.set(content.name, { document, content, unknown: unknownFieldFindings(value) });
  }
  return definitions;
};

/**
 * Reads and compiles the agents of `Host:Agents` (files, or folders of `.yaml`, `.yml` and `.json` files, many
 * documents each) and those of modules. They may call one another and share instructions, but not with stored agents,
 * which belong to tenants. Throws CodeAgentsError with all problems of all files and modules.
 */
export const loadCodeAgents = async (paths: readonly string[], deps: CodeAgentDeps): Promise<CodeAgents> => {
  const sources = await readSources(paths, deps.parse);
  addModuleAgents(sources, deps.modules ?? []);
  const definitions = readable(sources);
  const contents = new Map([...definitions].map(([name, { content }]) => [name, content]));
  const compiled = new Map<string, CompiledAgent>();
  const warnings: DefinitionProblem[] = [];
  for (const [name, { document, content, unknown }] of definitions) {
    const reachable = { agents: await reachWithin(contents, content), skills: deps.hostSkills };
    const { agent, findings } = compileAgent({ content, version: 1, origin: 'code' }, reachable, deps);
    for (const finding of [...unknown, ...findings])
      (isError(finding) ? sources.problems : warnings).push(located(document, finding.path, finding.message));
    if (agent !== null) compiled.set(name, agent);
  }
  if (sources.problems.length > 0) throw new CodeAgentsError(sources.problems);
  return { contents, compiled, warnings };
};
