import { basename, extname } from 'node:path';
import type { ToolRegistration } from '../../engine/tools/registry.ts';
import { type ToolAuthorizer, type ToolDefinition, ToolError } from '../../engine/tools/tool.ts';
import type { FieldPath, ToolProblem } from '../../engine/tools/tool-problem.ts';

/** Code that a host adds to the service. */
export interface HostModule {
  /** Default: the file's name without its extension. Unique among the modules of a host. */
  readonly name?: string;
  readonly tools?: readonly ToolDefinition[];
  /** Asked before every call of every tool; at most one module may have it. */
  readonly toolAuthorizer?: ToolAuthorizer;
}

/** A module, or a function that makes one. */
export type HostModuleExport = HostModule | (() => HostModule | Promise<HostModule>);

/** What a module gets from `import … from 'acp'`. */
export const hostLibrary = {
  defineModule: <T extends HostModuleExport>(module: T): T => module,
  ToolError,
} as const;

/** What the modules of a host bring, for the registry and the calls. */
export interface LoadedModules {
  readonly names: readonly string[];
  readonly registrations: readonly ToolRegistration[];
  readonly toolAuthorizer: ToolAuthorizer | null;
  readonly problems: readonly ToolProblem[];
}

export type LoadModule = (path: string) => Promise<Record<string, unknown>>;

type Members = Readonly<Record<string, unknown>>;

const MEMBERS = ['name', 'tools', 'toolAuthorizer'];
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isAuthorizer = (value: unknown): value is ToolAuthorizer =>
  isMembers(value) && typeof value['authorize'] === 'function';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The default export, or the one named `module`; a CommonJS module may hold its default export one level deeper. */
const exportOf = (namespace: Members): unknown => {
  const found = namespace['default'] ?? namespace['module'];
  return isMembers(found) && Object.hasOwn(found, 'default') ? found['default'] : found;
};

interface OpenedModule {
  readonly members: Members | null;
  readonly problem: string | null;
}

const openModule = async (path: string, loadModule: LoadModule): Promise<OpenedModule> => {
  try {
    const exported = exportOf(await loadModule(path));
    if (exported === undefined) return { members: null, problem: 'has neither a default export nor one named module' };
    const made: unknown = typeof exported === 'function' ? await (exported as () => unknown)() : exported;
    if (!isMembers(made))
      return { members: null, problem: 'must export a module object or a function that returns one' };
    return { members: made, problem: null };
  } catch (error) {
    return { members: null, problem: `could not be loaded: ${messageOf(error)}` };
  }
};

interface Loading {
  readonly names: Map<string, string>;
  readonly registrations: ToolRegistration[];
  readonly problems: ToolProblem[];
  authorizer: { readonly value: ToolAuthorizer; readonly path: string } | null;
}

const readTools = (tools: unknown, path: string, loading: Loading): string | null => {
  if (tools === undefined) return null;
  if (!Array.isArray(tools)) return 'must be a list of tools';
  // Any value: the registry reports what is no definition.
  for (const definition of tools as ToolDefinition[])
    loading.registrations.push({ definition, place: (_path: FieldPath) => ({ file: path, line: null }) });
  return null;
};

const readName = (given: unknown, path: string, loading: Loading): string | null => {
  if (given !== undefined && (typeof given !== 'string' || !NAME.test(given)))
    return 'must be 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit';
  const name = given ?? basename(path, extname(path));
  const earlier = loading.names.get(name);
  if (earlier !== undefined) return `is taken: ${earlier} is the module ${name} already`;
  loading.names.set(name, path);
  return null;
};

const readAuthorizer = (given: unknown, path: string, loading: Loading): string | null => {
  if (given === undefined) return null;
  if (!isAuthorizer(given)) return 'must be an object with a function authorize';
  if (loading.authorizer !== null) return `is taken: ${loading.authorizer.path} registers one already`;
  loading.authorizer = { value: given, path };
  return null;
};

/**
 * Loads the modules of `Host:Modules` in their order. Every mistake is collected; give registrations and problems to
 * `createToolRegistry`, which reports them together with its own.
 */
export const loadHostModules = async (paths: readonly string[], loadModule: LoadModule): Promise<LoadedModules> => {
  const loading: Loading = { names: new Map(), registrations: [], problems: [], authorizer: null };
  for (const path of paths) {
    const report = (field: string, message: string | null): void => {
      if (message !== null) loading.problems.push({ file: path, line: null, tool: null, field, message });
    };
    const { members, problem } = await openModule(path, loadModule);
    report('', problem);
    if (members === null) continue;
    for (const name of Object.keys(members))
      if (!MEMBERS.includes(name))
        report(name, `is not a member that this version knows; known are ${MEMBERS.join(', ')}`);
    report('name', readName(members['name'], path, loading));
    report('tools', readTools(members['tools'], path, loading));
    report('toolAuthorizer', readAuthorizer(members['toolAuthorizer'], path, loading));
  }
  return {
    names: [...loading.names.keys()],
    registrations: loading.registrations,
    toolAuthorizer: loading.authorizer?.value ?? null,
    problems: loading.problems,
  };
};
