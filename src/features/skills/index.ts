import type { Config } from '../../core/config/schema.ts';
import type { Handlers } from '../../core/context.ts';
import { environment } from '../../core/environment.ts';
import { byTenant, type InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { RegisteredTool } from '../../engine/tools/index.ts';
import type { AuditLog } from '../audit/index.ts';
import { type AgentSkills, createAgentSkills } from './agent-skills.ts';
import type { grantOperations } from './grants.operations.ts';
import { grantService } from './grants.service.ts';
import { grantStore } from './grants.store.ts';
import { type AgentSkill, type HostSkills, loadHostSkills } from './host-skills.ts';
import { type ModuleSkill, readModuleSkills } from './module-skills.ts';
import { findIsolation, IsolationMissingError, type ScriptIsolation } from './script-isolation.ts';
import { createScriptQueue } from './script-queue.ts';
import { createScripts, scriptEnvironment } from './script-runner.ts';
import { createScriptWatch } from './script-watch.ts';
import { skillTools } from './skill-tools.ts';
import type { skillOperations } from './skills.operations.ts';
import type { SkillLimits } from './skills.rules.ts';
import { skillService } from './skills.service.ts';
import { skillStore } from './skills.store.ts';

export type { AgentSkills } from './agent-skills.ts';
export type { AgentSkill } from './host-skills.ts';
export { describeIsolation, findIsolation } from './script-isolation.ts';

const limitsOf = (settings: Config['Service']['Skills']): SkillLimits => ({
  maxInstructionsBytes: settings.MaxInstructionsLength,
  maxResourceBytes: settings.MaxResourceContentLength,
  maxResources: settings.MaxResourcesPerSkill,
  maxScriptBytes: settings.Scripts.MaxScriptContentLength,
  maxScripts: settings.Scripts.MaxScriptsPerSkill,
});

/** Secrets of the configuration, which no script may get whatever the variable is called that holds one. */
const knownSecrets = ({ Service, Host }: Config): ReadonlySet<string> => {
  const found = new Set(Host.AuthToken === null ? [] : [Host.AuthToken]);
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value))
      if (typeof member !== 'string') walk(member);
      else if (/key$|secret|token/i.test(name) && member !== '') found.add(member);
  };
  walk(Service.Providers);
  return found;
};

export interface SkillsDeps {
  readonly storage: Storage;
  readonly state: Pick<InstanceState, 'entries'>;
  readonly config: Config;
  /** Skills of the host's modules. */
  readonly modules: readonly ModuleSkill[];
  readonly audit: AuditLog;
  readonly telemetry: Telemetry;
  readonly log: Pick<Logger, 'warn'>;
  readonly now: () => number;
  readonly newId: () => string;
}

export interface SkillsFeature {
  readonly skills: Handlers<typeof skillOperations>;
  readonly hostSkills: HostSkills;
  /** Where agents get their skills from. */
  readonly agentSkills: AgentSkills;
  /** The tools that come with skills which are switched on. */
  readonly tools: (skills: readonly AgentSkill[]) => readonly RegisteredTool[];
  readonly grants: Handlers<typeof grantOperations>;
  /** What is told before the input is even read, by operation. */
  readonly preconditions: Readonly<Record<string, () => void>>;
  /** Ends every script that still runs. */
  close(): Promise<void>;
}

/** Tried only where scripts run; throws where it is required and cannot be had. */
const isolationOf = async ({ Service, Host }: Config): Promise<ScriptIsolation> => {
  if (!Host.SkillScripts.Register) return null;
  const found = await findIsolation();
  if (found === null && Service.Skills.Scripts.Isolation === 'Required') throw new IsolationMissingError();
  return found;
};

/** Reads the skills of the host; throws when a root of them is missing, or a module's breaks a rule. */
export const skillsFeature = async (deps: SkillsDeps): Promise<SkillsFeature> => {
  const { config, storage, audit, log, now, newId } = deps;
  const settings = config.Service.Skills;
  const limits = limitsOf(settings);
  const { SkillRoots: roots, SearchDepth: searchDepth } = settings.Scripts;
  const ofModules = readModuleSkills(deps.modules, limits);
  const hostSkills = await loadHostSkills({ roots, searchDepth, ofModules, limits, log });
  const store = storage.stores(skillStore);
  const grantsStored = storage.stores(grantStore);
  const fingerprints = deps.state.entries('skillFingerprints', { load: byTenant(store.fingerprints) });
  const agentSkills = createAgentSkills(store, fingerprints, hostSkills, settings.MaxSkillsPerAgent);
  // The runner exists where the host registers it; the settings alone run nothing.
  const executionIsOn = config.Host.SkillScripts.Register;
  const stopping = new AbortController();
  const queue = createScriptQueue({
    perTenant: settings.Scripts.MaxConcurrentPerTenant,
    total: settings.Scripts.MaxConcurrentTotal,
  });
  const scripts = createScripts({
    settings: settings.Scripts,
    environment: scriptEnvironment(settings.Scripts.EnvironmentAllowList, environment(), knownSecrets(config)),
    grants: grantsStored,
    skills: agentSkills,
    audit,
    queue,
    watch: createScriptWatch(deps.telemetry, queue.waiting),
    isolation: await isolationOf(config),
    log,
    stopping: stopping.signal,
    now,
  });
  const grants = grantService({ store: grantsStored, skills: agentSkills, audit, executionIsOn, now, newId });
  return {
    hostSkills,
    grants: grants.handlers,
    preconditions: { 'grants.create': grants.assertMayGrant },
    skills: skillService({
      store,
      fingerprints,
      limits,
      isHostSkill: (name) => hostSkills.has(name),
      hasInterpreter: (extension) => Object.hasOwn(settings.Scripts.Interpreters, extension),
      revokeGrants: grants.revokeAll,
      audit,
      prefix: config.Host.Prefix,
      now,
      newId,
    }),
    agentSkills,
    tools: (skills) => skillTools(skills, executionIsOn ? scripts : null),
    async close() {
      stopping.abort();
      await scripts.idle();
    },
  };
};
