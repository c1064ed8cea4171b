import type { FieldError } from '../../contract/errors.ts';
import type { Json } from '../../contract/schema.ts';
import { canonicalJson } from '../../core/documents/canonical-json.ts';
import { compileChecker } from '../../core/validate.ts';
import type { AgentSkill } from './host-skills.ts';
import { skillContent, skillFingerprint } from './skills.content.ts';
import { type SkillLimits, skillFaults } from './skills.rules.ts';
import { AgentSkillRequest } from './skills.schema.ts';

/** A skill as a module has it. Its types are the module's word only. */
export interface ModuleSkill {
  readonly file: string;
  readonly value: { readonly name: string };
}

interface ModuleSkillProblem extends FieldError {
  readonly file: string;
  readonly skill: string;
}

/** Thrown at start with every fault of every skill: code is to be corrected, not skipped. */
class ModuleSkillsError extends Error {
  readonly problems: readonly ModuleSkillProblem[];

  constructor(problems: readonly ModuleSkillProblem[]) {
    const count = problems.length === 1 ? 'one problem' : `${problems.length} problems`;
    const lines = problems.map(
      ({ file, skill, path, message }) => `  ${file} (${skill}): ${path === '' ? '' : `${path} `}${message}`,
    );
    super([`The skills of the modules have ${count}:`, ...lines].join('\n'));
    this.name = 'ModuleSkillsError';
    this.problems = problems;
  }
}

/** A copy that the module cannot change any more, or what is wrong with the value. */
const readBody = (value: unknown): AgentSkillRequest | readonly FieldError[] => {
  try {
    // Throws for what JSON cannot hold, which JSON.stringify would leave out without a word.
    const copy: unknown = JSON.parse(canonicalJson(value as Json));
    const checker = compileChecker(AgentSkillRequest);
    return checker.check(copy) ? (copy as AgentSkillRequest) : checker.errors(copy);
  } catch (error) {
    return [{ path: '', message: `is no JSON value: ${error instanceof Error ? error.message : String(error)}` }];
  }
};

const isBody = (read: AgentSkillRequest | readonly FieldError[]): read is AgentSkillRequest => !Array.isArray(read);

/** The skills that modules bring. Throws ModuleSkillsError with all faults of all of them. */
export const readModuleSkills = (modules: readonly ModuleSkill[], limits: SkillLimits): readonly AgentSkill[] => {
  const problems: ModuleSkillProblem[] = [];
  const skills = modules.flatMap(({ file, value }): AgentSkill[] => {
    const read = readBody(value);
    const content = isBody(read) ? skillContent(read) : null;
    const faults = isBody(read) ? skillFaults(skillContent(read), limits) : read;
    problems.push(...faults.map((fault) => ({ ...fault, file, skill: value.name })));
    if (content === null) return [];
    return [{ ...content, origin: 'host', fingerprint: skillFingerprint('module', 1, content) }];
  });
  if (problems.length > 0) throw new ModuleSkillsError(problems);
  return skills;
};
