import type { AgentSkillRequest } from '../../features/skills/skills.schema.ts';

/** What a skill says, defaults applied, without what tells about its version. */
export const skillContent = (skill: AgentSkillRequest) => ({
  name: skill.name,
  description: skill.description,
  instructions: skill.instructions,
  compatibility: skill.compatibility ?? null,
  license: skill.license ?? null,
  allowedTools: skill.allowedTools ?? null,
  metadata: skill.metadata ?? {},
  enabled: skill.enabled ?? true,
  resources: (skill.resources ?? []).map((resource) => ({ description: null, mediaType: 'text/plain', ...resource })),
  scripts: (skill.scripts ?? []).map((script) => ({ description: null, parametersSchema: null, ...script })),
});
