import type { AuditTrail } from '../../core/audit.ts';
import type { Config } from '../../core/config/schema.ts';
import type { Handlers } from '../../core/context.ts';
import type { Logger } from '../../core/logger.ts';
import type { Storage } from '../../db/storage.ts';
import type { RegisteredTool } from '../../engine/tools/registry.ts';
import { type AgentSkills, createAgentSkills } from './agent-skills.ts';
import { ownedSkills, sharedSkills } from './current-skills.ts';
import { type AgentSkill, type HostSkills, loadHostSkills } from './host-skills.ts';
import { skillTools } from './skill-tools.ts';
import type { skillOperations } from './skills.operations.ts';
import type { SkillLimits } from './skills.rules.ts';
import { skillService } from './skills.service.ts';
import { createSkillStore } from './skills.store.ts';

export type { AgentSkills } from './agent-skills.ts';
export type { AgentSkill } from './host-skills.ts';

const limitsOf = (settings: Config['Service']['Skills']): SkillLimits => ({
  maxInstructionsBytes: settings.MaxInstructionsLength,
  maxResourceBytes: settings.MaxResourceContentLength,
  maxResources: settings.MaxResourcesPerSkill,
  maxScriptBytes: settings.Scripts.MaxScriptContentLength,
  maxScripts: settings.Scripts.MaxScriptsPerSkill,
});

export interface SkillsDeps {
  readonly storage: Storage;
  /** True when no other process writes the store while this one runs. */
  readonly ownsStore: boolean;
  readonly config: Config;
  readonly audit: AuditTrail;
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
}

/** Reads the skills of the host; throws when a root of them is missing. */
export const skillsFeature = async (deps: SkillsDeps): Promise<SkillsFeature> => {
  const { config, storage, audit, log, now, newId } = deps;
  const settings = config.Service.Skills;
  const limits = limitsOf(settings);
  const { SkillRoots: roots, SearchDepth: searchDepth } = settings.Scripts;
  const hostSkills = await loadHostSkills({ roots, searchDepth, limits, log });
  const store = createSkillStore(storage);
  const current = deps.ownsStore ? ownedSkills(store) : sharedSkills(store);
  return {
    hostSkills,
    skills: skillService({
      store,
      current,
      limits,
      isHostSkill: (name) => hostSkills.has(name),
      hasInterpreter: (extension) => Object.hasOwn(settings.Scripts.Interpreters, extension),
      revokeGrants: async () => undefined,
      audit,
      prefix: config.Host.Prefix,
      now,
      newId,
    }),
    agentSkills: createAgentSkills(current, hostSkills, settings.MaxSkillsPerAgent),
    tools: (skills) => skillTools(skills, null),
  };
};
