import { realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Logger } from '../../core/logger.ts';
import { findSkillFolders } from '../../core/skill-folder/find-folders.ts';
import { FolderTooLargeError, readFolderFiles } from '../../core/skill-folder/read-files.ts';
import { readSkillFolder, SkillFileError, skillFile } from '../../core/skill-folder/skill-folder.ts';
import { type SkillContent, skillContent, skillFingerprint } from './skills.content.ts';
import { type SkillLimits, skillFaults } from './skills.rules.ts';

/** A skill that an agent can be given: of the host, or stored by its tenant. */
export interface AgentSkill extends SkillContent {
  readonly origin: 'host' | 'stored';
  readonly fingerprint: string;
}

/** Skills of the host by name: read at start, the same for every tenant. */
export type HostSkills = ReadonlyMap<string, AgentSkill>;

export interface HostSkillDeps {
  /** Absolute paths. */
  readonly roots: readonly string[];
  /** Levels below a root that are searched. */
  readonly searchDepth: number;
  /** Skills that modules bring; a folder of the same name is left out. */
  readonly ofModules: readonly AgentSkill[];
  readonly limits: SkillLimits;
  readonly log: Pick<Logger, 'warn'>;
}

/** Thrown at start: a root that does not exist is a mistake in the configuration. */
class SkillRootError extends Error {
  constructor(root: string) {
    super(`Service:Skills:Scripts:SkillRoots: ${root} is no folder that can be read.`);
    this.name = 'SkillRootError';
  }
}

const realFolder = async (root: string): Promise<string> => {
  try {
    const real = await realpath(root);
    if ((await stat(real)).isDirectory()) return real;
  } catch {
    // Missing or not readable: both throw below.
  }
  throw new SkillRootError(root);
};

const load = async (folder: string, root: string, { limits, log }: HostSkillDeps): Promise<AgentSkill | null> => {
  const refuse = (rule: string): null => {
    log.warn({ folder, rule }, 'A skill of the host was left out');
    return null;
  };
  try {
    const { files, leftOut } = await readFolderFiles(folder, root);
    // Folders of version control and caches of tools are no part of what was published.
    const lost = leftOut.filter(({ reason }) => reason !== 'hidden' && reason !== 'generated');
    for (const { path, reason } of lost)
      log.warn({ folder, file: path, reason }, 'A file of a host skill was left out');
    const { skill } = readSkillFolder(files);
    if (skill.name !== basename(folder))
      return refuse(`${skillFile}: name must be that of the folder, ${basename(folder)}, and is ${skill.name}`);
    const { resources, scripts, ...rest } = skill;
    const content = skillContent({
      ...rest,
      metadata: { ...rest.metadata },
      resources: [...resources],
      scripts: [...scripts],
    });
    const faults = skillFaults(content, limits);
    if (faults.length > 0) return refuse(faults.map(({ path, message }) => `${path} ${message}`).join('; '));
    return { ...content, origin: 'host', fingerprint: skillFingerprint('host', 1, content) };
  } catch (error) {
    if (error instanceof SkillFileError) return refuse(`${skillFile}: ${error.message}`);
    if (error instanceof FolderTooLargeError) return refuse(error.message);
    throw error;
  }
};

/** Skills of modules, then of every root. A folder that breaks a rule is left out and told in the log; a missing root throws. */
export const loadHostSkills = async (deps: HostSkillDeps): Promise<HostSkills> => {
  const skills = new Map(deps.ofModules.map((skill) => [skill.name, skill]));
  for (const root of deps.roots) {
    const real = await realFolder(root);
    for (const folder of await findSkillFolders(real, deps.searchDepth)) {
      const skill = await load(folder, real, deps);
      if (skill === null) continue;
      if (skills.has(skill.name))
        deps.log.warn({ folder, rule: 'name is that of an earlier one' }, 'A skill of the host was left out');
      else skills.set(skill.name, skill);
    }
  }
  return skills;
};
