import { roles } from '../../contract/authority.ts';
import { isRecord } from '../../contract/record.ts';
import { builtInCriteria } from '../../engine/compiled-agent.ts';
import type { ApprovalPresenter, ContentGuard } from '../../engine/control/index.ts';
import type { RunEventListener } from '../../engine/record/index.ts';
import type { FieldPath, ToolDefinition, ToolRegistration } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { ModuleJobHandler } from '../jobs/index.ts';
import type { Judge } from '../judges/index.ts';
import { type HostModule, type HostSkill, patternGuardMark } from './host-module.ts';
import type { RolePolicy } from './role-policies.ts';

export type Members = Readonly<Record<string, unknown>>;

/** A value of a module with the file that it came from. */
export interface FromModule<T> {
  readonly file: string;
  readonly value: T;
}

/** Members that only one module may have: objects with these functions. */
const soleMembers = {
  toolAuthorizer: 'authorize',
  runAuthorization: 'authorize',
  attributionResolver: 'resolve',
  approvalPolicy: 'decide',
  archiveSink: 'archive',
  dataSubjectResolver: 'resolve',
  mcpTokenStore: ['load', 'save', 'remove'],
  deploymentCredential: 'token',
} as const satisfies Partial<Record<keyof HostModule, string | readonly string[]>>;
type SoleMember = keyof typeof soleMembers;

export const noneRegistered = () => ({
  /** File by name of the module. */
  names: new Map<string, string>(),
  registrations: [] as ToolRegistration[],
  agents: [] as FromModule<readonly Members[]>[],
  skills: [] as FromModule<HostSkill>[],
  /** By name in lower case, in the order of their registration; so are judges and listeners. */
  guards: new Map<string, FromModule<ContentGuard>>(),
  judges: new Map<string, FromModule<Judge>>(),
  eventListeners: new Map<string, FromModule<RunEventListener>>(),
  /** By key. */
  jobs: new Map<string, FromModule<ModuleJobHandler>>(),
  approvalPresenters: new Map<string, FromModule<ApprovalPresenter>>(),
  structuredResponseValidators: new Map<string, FromModule<StructuredResponseValidator>>(),
  loopCriteria: new Map<string, FromModule<LoopCriterionEvaluator>>(),
  rolePolicies: new Map<string, FromModule<RolePolicy>>(),
  sole: new Map<SoleMember, FromModule<unknown>>(),
});

/** What the modules read so far have brought. */
export type Registered = ReturnType<typeof noneRegistered>;

/** What a module brought of each member that only one may have; null where none did. */
export const soleMembersOf = ({ sole }: Registered) =>
  Object.fromEntries(
    Object.keys(soleMembers).map((member) => [member, sole.get(member as SoleMember)?.value ?? null]),
  ) as { readonly [M in SoleMember]: NonNullable<HostModule[M]> | null };

/** Reads one member of one module; messages follow the member's name. */
type MemberReader = (value: unknown, file: string, into: Registered) => string | null;

export type ModuleMember = Exclude<keyof HostModule, 'name'>;

const modelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const isFunction = (value: unknown): boolean => typeof value === 'function';

const isTaken = (earlier: FromModule<unknown> | undefined, name?: string): string | null =>
  earlier === undefined
    ? null
    : `is taken${name === undefined ? '' : ` for ${name}`}: ${earlier.file} registers one already`;

const oneOnly =
  (member: SoleMember): MemberReader =>
  (value, file, into) => {
    const methods: readonly string[] = [soleMembers[member]].flat();
    if (!isRecord(value) || !methods.every((method) => isFunction(value[method])))
      return `must be an object with ${methods.length === 1 ? 'a function' : 'the functions'} ${methods.join(', ')}`;
    const taken = isTaken(into.sole.get(member));
    // Perhaps no compiler has checked the module, so the calls take nothing for granted.
    if (taken === null) into.sole.set(member, { file, value });
    return taken;
  };

/** A member that maps names to functions, each name at most once over all modules. */
const byName =
  (
    member: 'structuredResponseValidators' | 'loopCriteria' | 'rolePolicies',
    what: string,
    refuse: (name: string) => string | null = () => null,
  ): MemberReader =>
  (functions, file, into) => {
    if (!isRecord(functions)) return `must be an object of functions by ${what}`;
    const target = into[member] as Map<string, FromModule<unknown>>;
    for (const [name, value] of Object.entries(functions)) {
      if (!modelName.test(name)) return `has ${JSON.stringify(name)}, which is no ${what}`;
      const refused = refuse(name);
      if (refused !== null) return refused;
      if (!isFunction(value)) return `must have a function for ${name}`;
      const taken = isTaken(target.get(name), name);
      if (taken !== null) return taken;
      target.set(name, { file, value });
    }
    return null;
  };

const readTools: MemberReader = (tools, file, into) => {
  if (!Array.isArray(tools)) return 'must be a list of tools';
  // Any value: the registry reports what is no definition.
  for (const definition of tools as ToolDefinition[])
    into.registrations.push({ definition, place: (_path: FieldPath) => ({ file, line: null }) });
  return null;
};

const readAgents: MemberReader = (agents, file, into) => {
  if (!Array.isArray(agents) || !agents.every(isRecord)) return 'must be a list of agent definitions';
  into.agents.push({ file, value: agents });
  return null;
};

const isNamed = (value: unknown, name: string, method: string): boolean =>
  isRecord(value) && typeof value[name] === 'string' && isFunction(value[method]);

const readPresenters: MemberReader = (presenters, file, into) => {
  if (!Array.isArray(presenters) || !presenters.every((value) => isNamed(value, 'toolName', 'present')))
    return 'must be a list of objects with a toolName and a function present';
  for (const presenter of presenters as ApprovalPresenter[]) {
    const taken = isTaken(into.approvalPresenters.get(presenter.toolName), presenter.toolName);
    if (taken !== null) return taken;
    into.approvalPresenters.set(presenter.toolName, { file, value: presenter });
  }
  return null;
};

const readSkills: MemberReader = (skills, file, into) => {
  const isSkill = (value: unknown): value is HostSkill =>
    isRecord(value) && ['name', 'description', 'instructions'].every((field) => typeof value[field] === 'string');
  if (!Array.isArray(skills) || !skills.every(isSkill))
    return 'must be a list of skills, each with name, description and instructions';
  for (const skill of skills) {
    const earlier = into.skills.find(({ value }) => value.name === skill.name);
    const taken = isTaken(earlier, skill.name);
    if (taken !== null) return taken;
    into.skills.push({ file, value: skill });
  }
  return null;
};

/** It stands in events, metrics and the names of scores. */
const shortName = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * A member that lists objects with a name and a function. `own` copies one, so that its name stays what it was checked
 * as; the function is called on the module's object, since it may use `this`.
 */
const listOf =
  <T extends { readonly name: string }>(
    into: (registered: Registered) => Map<string, FromModule<T>>,
    method: string,
    own: (value: T) => T,
    refuse: (value: T) => string | null = () => null,
  ): MemberReader =>
  (values, file, registered) => {
    if (!Array.isArray(values) || !values.every((value) => isNamed(value, 'name', method)))
      return `must be a list of objects with a name and a function ${method}`;
    for (const value of values as T[]) {
      const { name } = value;
      if (!shortName.test(name)) return `has ${JSON.stringify(name)}, which is not 1 to 64 of A-Z a-z 0-9 . _ -`;
      const key = name.toLowerCase();
      const refused = refuse(value) ?? isTaken(into(registered).get(key), name);
      if (refused !== null) return refused;
      into(registered).set(key, { file, value: own(value) });
    }
    return null;
  };

const readGuards = listOf<ContentGuard>(
  ({ guards }) => guards,
  'inspect',
  (guard) =>
    guard === patternGuardMark ? guard : { name: guard.name, inspect: (input, signal) => guard.inspect(input, signal) },
  (guard) =>
    guard.name.toLowerCase() === patternGuardMark.name && guard !== patternGuardMark
      ? `has ${guard.name}, which is the built-in guard: patternGuard() registers it`
      : null,
);

const readJudges = listOf<Judge>(
  ({ judges }) => judges,
  'judge',
  (judge) => ({
    name: judge.name,
    ...(judge.version === undefined ? {} : { version: judge.version }),
    judge: (run, signal, ask) => judge.judge(run, signal, ask),
  }),
  ({ name, version }) =>
    version !== undefined && (typeof version !== 'string' || version === '' || version.length > 64)
      ? `has a version of ${name} that is no text of 1 to 64 characters`
      : null,
);

const readEventListeners = listOf<RunEventListener>(
  ({ eventListeners }) => eventListeners,
  'onEvent',
  (listener) => ({ name: listener.name, onEvent: (event, run) => listener.onEvent(event, run) }),
);

const jobKey = /^[a-z0-9][a-z0-9._-]{0,127}$/;

const readJobs: MemberReader = (handlers, file, into) => {
  if (!Array.isArray(handlers) || !handlers.every((value) => isNamed(value, 'key', 'run')))
    return 'must be a list of objects with a key and a function run';
  for (const handler of handlers as ModuleJobHandler[]) {
    const { key, schedulable = true } = handler;
    if (!jobKey.test(key))
      return `has ${JSON.stringify(key)}, which is not 1 to 128 of a-z 0-9 . _ -, starting with a letter or digit`;
    if (key.startsWith('acp.')) return `has ${key}: keys that begin with acp. are those of the service`;
    if (typeof schedulable !== 'boolean') return `has ${key}, whose schedulable is neither true nor false`;
    const taken = isTaken(into.jobs.get(key), key);
    if (taken !== null) return taken;
    into.jobs.set(key, { file, value: { key, schedulable, run: (job, signal) => handler.run(job, signal) } });
  }
  return null;
};

const readers: Readonly<Record<ModuleMember, MemberReader>> = {
  tools: readTools,
  toolAuthorizer: oneOnly('toolAuthorizer'),
  runAuthorization: oneOnly('runAuthorization'),
  attributionResolver: oneOnly('attributionResolver'),
  rolePolicies: byName('rolePolicies', 'role', (name) =>
    roles.some((role) => role === name) ? null : `has ${name}; roles are ${roles.join(', ')}`,
  ),
  agents: readAgents,
  approvalPolicy: oneOnly('approvalPolicy'),
  approvalPresenters: readPresenters,
  structuredResponseValidators: byName('structuredResponseValidators', 'agent name'),
  loopCriteria: byName('loopCriteria', 'criterion kind', (kind) =>
    builtInCriteria.some((builtIn) => builtIn === kind) ? `has ${kind}, which is built in` : null,
  ),
  skills: readSkills,
  archiveSink: oneOnly('archiveSink'),
  guards: readGuards,
  judges: readJudges,
  eventListeners: readEventListeners,
  jobs: readJobs,
  dataSubjectResolver: oneOnly('dataSubjectResolver'),
  mcpTokenStore: oneOnly('mcpTokenStore'),
  deploymentCredential: oneOnly('deploymentCredential'),
};

const isMember = (name: string): name is ModuleMember => Object.hasOwn(readers, name);
const memberNames = ['name', ...Object.keys(readers)];

/** Reads every member but the name; `report` gets the member and what is wrong with it. */
export const readMembers = (
  members: Members,
  file: string,
  into: Registered,
  report: (member: string, message: string) => void,
): void => {
  for (const [name, value] of Object.entries(members)) {
    if (name === 'name' || value === undefined) continue;
    if (!isMember(name)) {
      report(name, `is not a member that this version knows; known are ${memberNames.join(', ')}`);
      continue;
    }
    const message = readers[name](value, file, into);
    if (message !== null) report(name, message);
  }
};
