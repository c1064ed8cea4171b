import { roles } from '../../contract/authority.ts';
import { builtInCriteria } from '../../engine/compiled-agent.ts';
import type { ApprovalPolicy, ApprovalPresenter, ContentGuard } from '../../engine/control/index.ts';
import type { RunEventListener } from '../../engine/record/index.ts';
import type { FieldPath, ToolAuthorizer, ToolDefinition, ToolRegistration } from '../../engine/tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from '../../engine/turn/index.ts';
import type { DataSubjectResolver } from '../data-subjects/index.ts';
import type { Judge } from '../judges/index.ts';
import type { ArchiveSink } from '../retention/index.ts';
import type { AttributionResolver } from './attribution.ts';
import { type HostModule, type HostSkill, patternGuardMark } from './host-module.ts';
import type { RolePolicy } from './role-policies.ts';
import type { RunAuthorizationHandler } from './run-authorization.ts';

export type Members = Readonly<Record<string, unknown>>;

/** A value of a module with the file that it came from. */
export interface FromModule<T> {
  readonly file: string;
  readonly value: T;
}

/** What the modules read so far have brought. */
export interface Registered {
  readonly names: Map<string, string>;
  readonly registrations: ToolRegistration[];
  readonly agents: FromModule<readonly Members[]>[];
  readonly skills: FromModule<HostSkill>[];
  /** By name in lower case, in the order of their registration. */
  readonly guards: Map<string, FromModule<ContentGuard>>;
  /** As the guards are. */
  readonly judges: Map<string, FromModule<Judge>>;
  readonly eventListeners: Map<string, FromModule<RunEventListener>>;
  readonly approvalPresenters: Map<string, FromModule<ApprovalPresenter>>;
  readonly structuredResponseValidators: Map<string, FromModule<StructuredResponseValidator>>;
  readonly loopCriteria: Map<string, FromModule<LoopCriterionEvaluator>>;
  readonly rolePolicies: Map<string, FromModule<RolePolicy>>;
  toolAuthorizer: FromModule<ToolAuthorizer> | null;
  runAuthorization: FromModule<RunAuthorizationHandler> | null;
  attributionResolver: FromModule<AttributionResolver> | null;
  approvalPolicy: FromModule<ApprovalPolicy> | null;
  archiveSink: FromModule<ArchiveSink> | null;
  dataSubjectResolver: FromModule<DataSubjectResolver> | null;
}

export const noneRegistered = (): Registered => ({
  names: new Map(),
  registrations: [],
  agents: [],
  skills: [],
  guards: new Map(),
  judges: new Map(),
  eventListeners: new Map(),
  approvalPresenters: new Map(),
  structuredResponseValidators: new Map(),
  loopCriteria: new Map(),
  rolePolicies: new Map(),
  toolAuthorizer: null,
  runAuthorization: null,
  attributionResolver: null,
  approvalPolicy: null,
  archiveSink: null,
  dataSubjectResolver: null,
});

/** Reads one member of one module; messages follow the member's name. */
type MemberReader = (given: unknown, file: string, into: Registered) => string | null;

export type ModuleMember = Exclude<keyof HostModule, 'name'>;

const modelName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const isFunction = (value: unknown): boolean => typeof value === 'function';

/** A member that only one module may have: an object with one function. */
const oneOnly =
  <
    K extends
      | 'toolAuthorizer'
      | 'runAuthorization'
      | 'attributionResolver'
      | 'approvalPolicy'
      | 'archiveSink'
      | 'dataSubjectResolver',
  >(
    member: K,
    method: string,
  ): MemberReader =>
  (given, file, into) => {
    if (!isMembers(given) || !isFunction(given[method])) return `must be an object with a function ${method}`;
    const earlier = into[member];
    if (earlier !== null) return `is taken: ${earlier.file} registers one already`;
    // A module is code that its types have checked, or nobody: the calls take nothing of it for granted.
    into[member] = { file, value: given } as unknown as Registered[K];
    return null;
  };

/** A member that maps names to functions, each name at most once over all modules. */
const byName =
  (
    member: 'structuredResponseValidators' | 'loopCriteria' | 'rolePolicies',
    what: string,
    refuse: (name: string) => string | null = () => null,
  ): MemberReader =>
  (given, file, into) => {
    if (!isMembers(given)) return `must be an object of functions by ${what}`;
    const target = into[member] as Map<string, FromModule<unknown>>;
    for (const [name, value] of Object.entries(given)) {
      if (!modelName.test(name)) return `has ${JSON.stringify(name)}, which is no ${what}`;
      const refused = refuse(name);
      if (refused !== null) return refused;
      if (!isFunction(value)) return `must have a function for ${name}`;
      const earlier = target.get(name);
      if (earlier !== undefined) return `is taken for ${name}: ${earlier.file} registers one already`;
      target.set(name, { file, value });
    }
    return null;
  };

const readTools: MemberReader = (given, file, into) => {
  if (!Array.isArray(given)) return 'must be a list of tools';
  // Any value: the registry reports what is no definition.
  for (const definition of given as ToolDefinition[])
    into.registrations.push({ definition, place: (_path: FieldPath) => ({ file, line: null }) });
  return null;
};

const readAgents: MemberReader = (given, file, into) => {
  if (!Array.isArray(given) || !given.every(isMembers)) return 'must be a list of agent definitions';
  into.agents.push({ file, value: given });
  return null;
};

const readPresenters: MemberReader = (given, file, into) => {
  const isPresenter = (value: unknown): value is ApprovalPresenter =>
    isMembers(value) && typeof value['toolName'] === 'string' && isFunction(value['present']);
  if (!Array.isArray(given) || !given.every(isPresenter))
    return 'must be a list of objects with a toolName and a function present';
  for (const presenter of given) {
    const earlier = into.approvalPresenters.get(presenter.toolName);
    if (earlier !== undefined) return `is taken for ${presenter.toolName}: ${earlier.file} registers one already`;
    into.approvalPresenters.set(presenter.toolName, { file, value: presenter });
  }
  return null;
};

const readSkills: MemberReader = (given, file, into) => {
  const isSkill = (value: unknown): value is HostSkill =>
    isMembers(value) && ['name', 'description', 'instructions'].every((field) => typeof value[field] === 'string');
  if (!Array.isArray(given) || !given.every(isSkill))
    return 'must be a list of skills, each with name, description and instructions';
  for (const skill of given) {
    const earlier = into.skills.find(({ value }) => value.name === skill.name);
    if (earlier !== undefined) return `is taken for ${skill.name}: ${earlier.file} registers one already`;
    into.skills.push({ file, value: skill });
  }
  return null;
};

/** Of guards and judges: it stands in events, metrics and the names of scores. */
const shortName = /^[A-Za-z0-9._-]{1,64}$/;

const readGuards: MemberReader = (given, file, into) => {
  const isGuard = (value: unknown): value is ContentGuard =>
    isMembers(value) && typeof value['name'] === 'string' && isFunction(value['inspect']);
  if (!Array.isArray(given) || !given.every(isGuard))
    return 'must be a list of objects with a name and a function inspect';
  for (const guard of given) {
    const { name } = guard;
    if (!shortName.test(name)) return `has ${JSON.stringify(name)}, which is not 1 to 64 of A-Z a-z 0-9 . _ -`;
    const key = name.toLowerCase();
    if (key === patternGuardMark.name && guard !== patternGuardMark)
      return `has ${name}, which is the built-in guard: patternGuard() registers it`;
    const earlier = into.guards.get(key);
    if (earlier !== undefined) return `is taken for ${name}: ${earlier.file} registers one already`;
    // The name stays what it was checked as; `inspect` may use `this`.
    const own: ContentGuard = { name, inspect: (input, signal) => guard.inspect(input, signal) };
    into.guards.set(key, { file, value: guard === patternGuardMark ? guard : own });
  }
  return null;
};

const readJudges: MemberReader = (given, file, into) => {
  const isJudge = (value: unknown): value is Judge =>
    isMembers(value) && typeof value['name'] === 'string' && isFunction(value['judge']);
  if (!Array.isArray(given) || !given.every(isJudge))
    return 'must be a list of objects with a name and a function judge';
  for (const judge of given) {
    const { name, version } = judge;
    if (!shortName.test(name)) return `has ${JSON.stringify(name)}, which is not 1 to 64 of A-Z a-z 0-9 . _ -`;
    if (version !== undefined && (typeof version !== 'string' || version === '' || version.length > 64))
      return `has a version of ${name} that is no text of 1 to 64 characters`;
    const key = name.toLowerCase();
    const earlier = into.judges.get(key);
    if (earlier !== undefined) return `is taken for ${name}: ${earlier.file} registers one already`;
    // Name and version stay what they were checked as; `judge` may use `this`.
    const own: Judge = {
      name,
      ...(version === undefined ? {} : { version }),
      judge: (run, signal, ask) => judge.judge(run, signal, ask),
    };
    into.judges.set(key, { file, value: own });
  }
  return null;
};

const readEventListeners: MemberReader = (given, file, into) => {
  const isListener = (value: unknown): value is RunEventListener =>
    isMembers(value) && typeof value['name'] === 'string' && isFunction(value['onEvent']);
  if (!Array.isArray(given) || !given.every(isListener))
    return 'must be a list of objects with a name and a function onEvent';
  for (const listener of given) {
    const { name } = listener;
    if (!shortName.test(name)) return `has ${JSON.stringify(name)}, which is not 1 to 64 of A-Z a-z 0-9 . _ -`;
    const key = name.toLowerCase();
    const earlier = into.eventListeners.get(key);
    if (earlier !== undefined) return `is taken for ${name}: ${earlier.file} registers one already`;
    // The name stays what it was checked as; `onEvent` may use `this`.
    into.eventListeners.set(key, { file, value: { name, onEvent: (event, run) => listener.onEvent(event, run) } });
  }
  return null;
};

const readers: Readonly<Record<ModuleMember, MemberReader>> = {
  tools: readTools,
  toolAuthorizer: oneOnly('toolAuthorizer', 'authorize'),
  runAuthorization: oneOnly('runAuthorization', 'authorize'),
  attributionResolver: oneOnly('attributionResolver', 'resolve'),
  rolePolicies: byName('rolePolicies', 'role', (name) =>
    roles.some((role) => role === name) ? null : `has ${name}; roles are ${roles.join(', ')}`,
  ),
  agents: readAgents,
  approvalPolicy: oneOnly('approvalPolicy', 'decide'),
  approvalPresenters: readPresenters,
  structuredResponseValidators: byName('structuredResponseValidators', 'agent name'),
  loopCriteria: byName('loopCriteria', 'criterion kind', (kind) =>
    builtInCriteria.some((builtIn) => builtIn === kind) ? `has ${kind}, which is built in` : null,
  ),
  skills: readSkills,
  archiveSink: oneOnly('archiveSink', 'archive'),
  guards: readGuards,
  judges: readJudges,
  eventListeners: readEventListeners,
  dataSubjectResolver: oneOnly('dataSubjectResolver', 'resolve'),
};

const isMember = (name: string): name is ModuleMember => Object.hasOwn(readers, name);
const known = ['name', ...Object.keys(readers)];

/** Reads every member but the name; `report` gets the member and what is wrong with it. */
export const readMembers = (
  members: Members,
  file: string,
  into: Registered,
  report: (member: string, message: string) => void,
): void => {
  for (const [name, given] of Object.entries(members)) {
    if (name === 'name' || given === undefined) continue;
    if (!isMember(name)) {
      report(name, `is not a member that this version knows; known are ${known.join(', ')}`);
      continue;
    }
    const message = readers[name](given, file, into);
    if (message !== null) report(name, message);
  }
};
