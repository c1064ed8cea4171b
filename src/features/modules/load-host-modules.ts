import { basename, extname } from 'node:path';
import type { ApprovalPolicy, ApprovalPresenter, ContentGuard } from '../../engine/control/index.ts';
import type { RunEventListener } from '../../engine/record/index.ts';
import type { ToolAuthorizer, ToolProblem, ToolRegistration } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { DataSubjectResolver } from '../data-subjects/index.ts';
import type { Judge } from '../judges/index.ts';
import type { ArchiveSink } from '../retention/index.ts';
import type { AttributionResolver } from './attribution.ts';
import { type HostSkill, patternGuardMark } from './host-module.ts';
import { type LateAudit, type ModuleHost, moduleHost } from './module-audit.ts';
import {
  type FromModule,
  isMembers,
  type Members,
  noneRegistered,
  type Registered,
  readMembers,
} from './module-members.ts';
import type { RolePolicy } from './role-policies.ts';
import type { RunAuthorizationHandler } from './run-authorization.ts';

/** What the modules of a host bring, fixed until restart. */
export interface LoadedModules {
  readonly names: readonly string[];
  readonly registrations: readonly ToolRegistration[];
  readonly toolAuthorizer: ToolAuthorizer | null;
  readonly runAuthorization: RunAuthorizationHandler | null;
  readonly attributionResolver: AttributionResolver | null;
  /** By role. */
  readonly rolePolicies: ReadonlyMap<string, RolePolicy>;
  /** As the modules have them: what loads code agents checks them. */
  readonly agents: readonly FromModule<readonly Members[]>[];
  readonly approvalPolicy: ApprovalPolicy | null;
  /** By tool name. */
  readonly approvalPresenters: ReadonlyMap<string, ApprovalPresenter>;
  /** By agent name. */
  readonly structuredResponseValidators: ReadonlyMap<string, StructuredResponseValidator>;
  /** By the kind that definitions name; none is a built-in one. */
  readonly loopCriteria: ReadonlyMap<string, LoopCriterionEvaluator>;
  /** Unique by name; the skills feature checks the rest. */
  readonly skills: readonly FromModule<HostSkill>[];
  readonly archiveSink: ArchiveSink | null;
  /** In the order of their registration; the names are unique, and none is that of the pattern guard. */
  readonly guards: readonly ContentGuard[];
  /** A module registers the pattern guard. */
  readonly usesPatternGuard: boolean;
  /** In the order of their registration; the names are unique in any case. */
  readonly judges: readonly FromModule<Judge>[];
  /** As the judges are. */
  readonly eventListeners: readonly FromModule<RunEventListener>[];
  readonly dataSubjectResolver: DataSubjectResolver | null;
  readonly problems: readonly ToolProblem[];
}

export type LoadModule = (path: string) => Promise<Record<string, unknown>>;

const moduleName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

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

const openModule = async (path: string, loadModule: LoadModule, host: ModuleHost): Promise<OpenedModule> => {
  try {
    const exported = exportOf(await loadModule(path));
    if (exported === undefined) return { members: null, problem: 'has neither a default export nor one named module' };
    const made: unknown =
      typeof exported === 'function' ? await (exported as (host: ModuleHost) => unknown)(host) : exported;
    if (!isMembers(made))
      return { members: null, problem: 'must export a module object or a function that returns one' };
    return { members: made, problem: null };
  } catch (error) {
    return { members: null, problem: `could not be loaded: ${messageOf(error)}` };
  }
};

const readName = (given: unknown, path: string, into: Registered): string | null => {
  if (given !== undefined && (typeof given !== 'string' || !moduleName.test(given)))
    return 'must be 1 to 128 of A-Z a-z 0-9 . _ -, starting with a letter or digit';
  const name = given ?? basename(path, extname(path));
  const earlier = into.names.get(name);
  if (earlier !== undefined) return `is taken: ${earlier} is the module ${name} already`;
  into.names.set(name, path);
  return null;
};

const valuesOf = <T>(found: ReadonlyMap<string, FromModule<T>>): ReadonlyMap<string, T> =>
  new Map([...found].map(([name, { value }]) => [name, value]));

/**
 * Loads the modules of `Host:Modules` in their order. Every mistake is collected; give registrations and problems to
 * `createToolRegistry`, which reports them together with its own.
 */
export const loadHostModules = async (
  paths: readonly string[],
  loadModule: LoadModule,
  audit: LateAudit = { trail: null },
): Promise<LoadedModules> => {
  const found = noneRegistered();
  const problems: ToolProblem[] = [];
  for (const path of paths) {
    const report = (field: string, message: string | null): void => {
      if (message !== null) problems.push({ file: path, line: null, tool: null, field, message });
    };
    let name = basename(path, extname(path));
    const { members, problem } = await openModule(
      path,
      loadModule,
      moduleHost(audit, () => name),
    );
    report('', problem);
    if (members === null) continue;
    report('name', readName(members['name'], path, found));
    if (typeof members['name'] === 'string') name = members['name'];
    readMembers(members, path, found, report);
  }
  return {
    names: [...found.names.keys()],
    registrations: found.registrations,
    toolAuthorizer: found.toolAuthorizer?.value ?? null,
    runAuthorization: found.runAuthorization?.value ?? null,
    attributionResolver: found.attributionResolver?.value ?? null,
    rolePolicies: valuesOf(found.rolePolicies),
    agents: found.agents,
    approvalPolicy: found.approvalPolicy?.value ?? null,
    approvalPresenters: valuesOf(found.approvalPresenters),
    structuredResponseValidators: valuesOf(found.structuredResponseValidators),
    loopCriteria: valuesOf(found.loopCriteria),
    skills: found.skills,
    archiveSink: found.archiveSink?.value ?? null,
    guards: [...found.guards.values()].flatMap(({ value }) => (value === patternGuardMark ? [] : [value])),
    usesPatternGuard: found.guards.has(patternGuardMark.name),
    judges: [...found.judges.values()],
    eventListeners: [...found.eventListeners.values()],
    dataSubjectResolver: found.dataSubjectResolver?.value ?? null,
    problems,
  };
};
