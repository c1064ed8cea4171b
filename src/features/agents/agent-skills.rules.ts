import type { AgentSkill } from '../skills/index.ts';
import type { AgentContent } from './agents.content.ts';
import { error, errorUnless, type Finding, quoted, warning } from './agents.findings.ts';

/** Skills that a definition names, by name: those of its tenant and of the host; a missing one resolves to nothing. */
export type ReachableSkills = ReadonlyMap<string, AgentSkill>;

/** What the model is told about: skills that are there and switched on, in the definition's order. */
export const enabledSkills = (content: AgentContent, skills: ReachableSkills): readonly AgentSkill[] =>
  content.skillNames.flatMap((name) => {
    const skill = skills.get(name);
    return skill?.enabled === true ? [skill] : [];
  });

export const skillFindings = (content: AgentContent, skills: ReachableSkills, maxSkills: number): Finding[] => {
  const { skillNames } = content;
  const tooMany = `The agent names ${skillNames.length} skills; at most ${maxSkills} are allowed.`;
  const seen = new Set<string>();
  // Beyond the limit entries are not looked at: the list may have any length.
  const each = skillNames.slice(0, maxSkills).flatMap((name, index) => {
    const path = `skillNames[${index}]`;
    if (seen.has(name)) return [error('duplicate-entry', path, `The skill ${quoted(name)} is listed twice.`)];
    seen.add(name);
    const skill = skills.get(name);
    if (skill === undefined) return [error('skill-not-found', path, `There is no skill ${quoted(name)}.`)];
    if (skill.enabled) return [];
    return [warning('skill-disabled', path, `The skill ${quoted(name)} is switched off; the agent runs without it.`)];
  });
  return [...errorUnless(skillNames.length <= maxSkills, 'too-many-skills', 'skillNames', tooMany), ...each];
};

/** What the model reads of its skills before it loads one; null without any. */
export const skillList = (skills: readonly AgentSkill[]): string | null =>
  skills.length === 0
    ? null
    : [
        'You have skills. When a task matches one, load it with load_skill before you begin, and follow it:',
        // A description may have lines of its own, which would look like further entries.
        ...skills.map(({ name, description }) => `- ${name}: ${description.trim().replaceAll(/\s*\n\s*/g, ' ')}`),
      ].join('\n');
