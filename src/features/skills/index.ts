import type { Config } from '../../core/config/schema.ts';
import { environment } from '../../core/environment.ts';
import { byTenant, type InstanceState } from '../../core/instance-state.ts';
import type { Logger } from '../../core/logger.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { Storage } from '../../db/storage.ts';
import type { AuditLog } from '../audit/index.ts';
import { createAgentSkills } from './agent-skills.ts';
import { grantService } from './grants.service.ts';
import { grantStore } from './grants.store.ts';
import { type AgentSkill, loadHostSkills } from './host-skills.ts';
import { type ModuleSkill, readModuleSkills } from './module-skills.ts';
import { findIsolation, IsolationMissingError, type ScriptIsolation } from './script-isolation.ts';
import { createScriptQueue } from './script-queue.ts';
import { createScripts, scriptEnvironment } from './script-runner.ts';
import { createScriptWatch } from './script-watch.ts';
import { skillTools } from './skill-tools.ts';
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

/** Secrets of the configuration. No script may get one, whatever the variable that holds it is called. */
const knownSecrets = ({ Service, Host }: Config): ReadonlySet<string> => {
  const secrets = new Set(Host.AuthToken === null ? [] : [Host.AuthToken]);
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value))
      if (typeof member !== 'string') walk(member);
      else if (/key$|secret|token/i.test(name) && member !== '') secrets.add(member);
  };
  walk(Service.Providers);
  return secrets;
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

/** Looked for only where scripts run. Throws where isolation is required and not available. */
const isolationOf = async ({ Service, Host }: Config): Promise<ScriptIsolation> => {
  if (!Host.SkillScripts.Register) return null;
  const isolation = await findIsolation();
  if (isolation === null && Service.Skills.Scripts.Isolation === 'Required') throw new IsolationMissingError();
  return isolation;
};

/** Reads the skills of the host; throws when a root of them is missing, or a module's breaks a rule. */
export const skillsFeature = async (deps: SkillsDeps) => {
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
    /** Checked before the input is even read, by operation. */
    preconditions: { 'grants.create': grants.assertMayGrant } as Readonly<Record<string, () => void>>,
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
    /** The tools that come with skills which are switched on. */
    tools: (skills: readonly AgentSkill[]) => skillTools(skills, executionIsOn ? scripts : null),
    /** Ends every script that still runs. */
    async close(): Promise<void> {
      stopping.abort();
      await scripts.idle();
    },
  };
};
