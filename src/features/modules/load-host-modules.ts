import { basename, extname } from 'node:path';
import { isRecord } from '../../contract/record.ts';
import type { ToolProblem } from '../../engine/tools/index.ts';
import { patternGuardMark } from './host-module.ts';
import { type LateAudit, type ModuleHost, moduleHost } from './module-audit.ts';
import {
  type FromModule,
  type Members,
  noneRegistered,
  type Registered,
  readMembers,
  soleMembersOf,
} from './module-members.ts';

export type LoadModule = (path: string) => Promise<Record<string, unknown>>;

const moduleName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The default export, or the one named `module`; a CommonJS module may hold its default export one level deeper. */
const exportOf = (namespace: Members): unknown => {
  const exported = namespace['default'] ?? namespace['module'];
  return isRecord(exported) && Object.hasOwn(exported, 'default') ? exported['default'] : exported;
};

/** The members, or what keeps them from being read. */
const openModule = async (path: string, loadModule: LoadModule, host: ModuleHost): Promise<Members | string> => {
  try {
    const exported = exportOf(await loadModule(path));
    if (exported === undefined) return 'has neither a default export nor one named module';
    const made: unknown =
      typeof exported === 'function' ? await (exported as (host: ModuleHost) => unknown)(host) : exported;
    return isRecord(made) ? made : 'must export a module object or a function that returns one';
  } catch (error) {
    return `could not be loaded: ${messageOf(error)}`;
  }
};

const readName = (stated: unknown, path: string, into: Registered): string | null => {
  if (stated !== undefined && (typeof stated !== 'string' || !moduleName.test(stated)))
    return 'must be 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit';
  const name = stated ?? basename(path, extname(path));
  const earlier = into.names.get(name);
  if (earlier !== undefined) return `is taken: ${earlier} is the module ${name} already`;
  into.names.set(name, path);
  return null;
};

const valuesOf = <T>(entries: ReadonlyMap<string, FromModule<T>>): ReadonlyMap<string, T> =>
  new Map([...entries].map(([name, { value }]) => [name, value]));

/**
 * Loads the modules of `Host:Modules` in their order. Every mistake is collected; give registrations and problems to
 * `createToolRegistry`, which reports them together with its own.
 */
export const loadHostModules = async (
  paths: readonly string[],
  loadModule: LoadModule,
  audit: LateAudit = { trail: null },
) => {
  const registered = noneRegistered();
  const problems: ToolProblem[] = [];
  for (const path of paths) {
    const report = (field: string, message: string | null): void => {
      if (message !== null) problems.push({ file: path, line: null, tool: null, field, message });
    };
    let name = basename(path, extname(path));
    const members = await openModule(
      path,
      loadModule,
      moduleHost(audit, () => name),
    );
    if (typeof members === 'string') {
      report('', members);
      continue;
    }
    report('name', readName(members['name'], path, registered));
    if (typeof members['name'] === 'string') name = members['name'];
    readMembers(members, path, registered, report);
  }
  const { names, registrations, agents, skills, guards, judges, eventListeners, jobs } = registered;
  return {
    ...soleMembersOf(registered),
    names: [...names.keys()],
    registrations,
    /** As the modules have them: what loads code agents checks them. */
    agents,
    /** Unique by name; the skills feature checks the rest. */
    skills,
    /** In the order of their registration; the names are unique, and none is that of the pattern guard. */
    guards: [...guards.values()].flatMap(({ value }) => (value === patternGuardMark ? [] : [value])),
    /** A module registers the pattern guard. */
    usesPatternGuard: guards.has(patternGuardMark.name),
    /** In the order of their registration, as the listeners are; the names are unique in any case. */
    judges: [...judges.values()],
    eventListeners: [...eventListeners.values()],
    /** Handlers of jobs; the keys are unique, and none is the service's own. */
    jobs: [...jobs.values()],
    /** By tool name. */
    approvalPresenters: valuesOf(registered.approvalPresenters),
    /** By agent name. */
    structuredResponseValidators: valuesOf(registered.structuredResponseValidators),
    /** By the kind that definitions name; none is a built-in one. */
    loopCriteria: valuesOf(registered.loopCriteria),
    /** By role. */
    rolePolicies: valuesOf(registered.rolePolicies),
    problems,
  };
};

/** What the modules of a host bring, fixed until restart. */
export type LoadedModules = Awaited<ReturnType<typeof loadHostModules>>;
