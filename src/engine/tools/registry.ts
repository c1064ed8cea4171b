import type { Json } from '../../contract/schema.ts';
import type { Principal } from '../../core/context.ts';
import { type ArgumentsChecker, argumentsChecker } from './arguments.ts';
import { definitionProblems } from './definition.ts';
import type { ContinuedCall } from './questions.ts';
import type { OpensSpan, ToolContext, ToolDefinition, ToolDescriptor, ToolRun } from './tool.ts';
import {
  type FieldPath,
  type FieldProblem,
  formatPath,
  type ToolPlace,
  type ToolProblem,
  ToolProblemsError,
} from './tool-problem.ts';

/** A definition with the place it comes from. */
export interface ToolRegistration {
  readonly definition: ToolDefinition;
  /** Where a member of the declaration stands, for the report. */
  place(path: FieldPath): ToolPlace;
}

/** A tool that can be called. */
export interface RegisteredTool {
  readonly descriptor: ToolDescriptor;
  readonly definition: ToolDefinition;
  readonly checkArguments: ArgumentsChecker;
  /** True: the body ends its own wait, as a call of another agent does, and no timer is set for it. */
  readonly ownsTimeout: boolean;
  /** Where a call of a tool with many sources goes, by its arguments; null: the descriptor says it. */
  readonly sourceOf: ((args: Json) => string | null) | null;
  /** Asked before anybody is asked for approval; what it throws ends the call. Null: nothing is asked. */
  readonly admit: ((args: Json, context: ToolContext, call: BuiltInCall) => Promise<void>) | null;
  /** A body of the service itself, which may know the whole call; null: the definition's. */
  readonly body: BuiltInBody | null;
  /** What guards take its results for. */
  readonly resultSource: 'ToolResult' | 'RemoteTool' | 'SkillResource';
  /** True: what it is given stays in the store, so it gets no more than records do where guards mask. */
  readonly storesArguments: boolean;
}

/** What a body of the service itself knows of its call beyond what a module's may. */
export interface BuiltInCall {
  readonly run: ToolRun;
  readonly principal: Principal;
  /** Joins log lines to the request. */
  readonly requestId: string;
  /** True: there is a person who can be asked (ToolQuestions). Default: nobody. */
  readonly mayAsk?: boolean;
  /** What was said to the questions of the call before; absent: it begins. */
  readonly continued?: ContinuedCall;
  /** Opens a span below that of the call; absent where nothing is traced. */
  readonly openSpan?: OpensSpan;
}

export type BuiltInBody = (args: Json, context: ToolContext, call: BuiltInCall) => Promise<Json | string | null>;

/** Tools of code, fixed until restart. */
export type ToolRegistry = ReturnType<typeof createToolRegistry>;

/** Makes a definition callable without the checks of the registry: for tools that the service itself makes. */
export const registeredTool = (
  definition: ToolDefinition,
  options: Partial<Pick<ToolDescriptor, 'kind' | 'source'>> &
    Partial<
      Pick<RegisteredTool, 'ownsTimeout' | 'sourceOf' | 'admit' | 'body' | 'resultSource' | 'storesArguments'>
    > = {},
): RegisteredTool => ({
  descriptor: {
    name: definition.name,
    description: definition.description,
    jsonSchema: definition.inputSchema,
    kind: options.kind ?? (definition.runsOnClient === true ? 'Client' : 'Code'),
    source: options.source ?? null,
    effect: definition.effect ?? 'Read',
    requiresApproval: definition.requiresApproval ?? false,
    runsOnClient: definition.runsOnClient ?? false,
    requiredPermission: definition.requiredPermission ?? null,
    timeoutMs: definition.timeoutMs ?? null,
    maxOutputBytes: definition.maxOutputBytes ?? null,
    safeToRepeat: definition.safeToRepeat ?? false,
  },
  definition,
  checkArguments: argumentsChecker(definition.inputSchema, { recursion: 'through-members' }),
  ownsTimeout: options.ownsTimeout ?? false,
  sourceOf: options.sourceOf ?? null,
  admit: options.admit ?? null,
  body: options.body ?? null,
  resultSource: options.resultSource ?? 'ToolResult',
  storesArguments: options.storesArguments ?? false,
});

/** A copy that later changes of the module's object do not reach; a schema library's own members fall away. */
const frozenCopy = (definition: ToolDefinition): ToolDefinition => {
  const inputSchema = JSON.parse(JSON.stringify(definition.inputSchema)) as Json;
  const { validate, execute } = definition;
  return Object.freeze({
    ...definition,
    inputSchema,
    // Bound, so that a definition may be an object whose methods use `this`.
    ...(validate === undefined ? {} : { validate: validate.bind(definition) }),
    ...(execute === undefined ? {} : { execute: execute.bind(definition) }),
  });
};

/** The name as it was given; null when a module gave none, or no object at all. */
const givenName = (definition: unknown): string | null => {
  if (typeof definition !== 'object' || definition === null || !('name' in definition)) return null;
  return typeof definition.name === 'string' ? definition.name : null;
};

const located = (registration: ToolRegistration, { path, message }: FieldProblem): ToolProblem => ({
  ...registration.place(path),
  tool: givenName(registration.definition),
  field: formatPath(path),
  message,
});

const describePlace = ({ file, line }: ToolPlace): string => (line === null ? file : `${file}:${line}`);

/**
 * Checks every definition and keeps those that may be called. `earlier` are problems found while loading, so that one
 * report has them all. Throws ToolProblemsError when there is any.
 */
export const createToolRegistry = (
  registrations: readonly ToolRegistration[],
  earlier: readonly ToolProblem[] = [],
) => {
  const problems: ToolProblem[] = [...earlier];
  const tools = new Map<string, RegisteredTool>();
  const firstPlaces = new Map<string, ToolPlace>();
  for (const registration of registrations) {
    const mistakes = definitionProblems(registration.definition);
    problems.push(...mistakes.map((problem) => located(registration, problem)));
    const name = givenName(registration.definition);
    if (name === null) continue;
    const first = firstPlaces.get(name);
    if (first !== undefined) {
      const message = `is taken: ${describePlace(first)} registers a tool of this name`;
      problems.push(located(registration, { path: ['name'], message }));
      continue;
    }
    firstPlaces.set(name, registration.place(['name']));
    if (mistakes.length === 0) tools.set(name, registeredTool(frozenCopy(registration.definition)));
  }
  if (problems.length > 0) throw new ToolProblemsError(problems);
  const sorted = [...tools.values()].sort((a, b) => (a.descriptor.name < b.descriptor.name ? -1 : 1));
  return {
    /** Ordered by name. */
    list: (): readonly RegisteredTool[] => sorted,
    /** By exact name. */
    get: (name: string): RegisteredTool | undefined => tools.get(name),
  };
};
