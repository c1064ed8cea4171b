import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Logger } from '../../core/logger.ts';
import { FolderTooLargeError, isWithin, readFolderFiles } from '../../core/skill-folder/read-files.ts';
import { readSkillFolder, SKILL_FILE, SkillFileError } from '../../core/skill-folder/skill-folder.ts';
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

/** Thrown at start: a root that is not there was not meant. */
class SkillRootError extends Error {
  constructor(root: string) {
    super(`Service:Skills:Scripts:SkillRoots: ${root} is no folder that can be read.`);
    this.name = 'SkillRootError';
  }
}

interface Found {
  readonly folder: string;
  readonly root: string;
}

const realFolder = async (root: string): Promise<string> => {
  try {
    const real = await realpath(root);
    if ((await stat(real)).isDirectory()) return real;
  } catch {
    // Missing or not to be entered: told below, either way.
  }
  throw new SkillRootError(root);
};

const isFile = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
};

/** Skill folders at most `depth` levels below; a skill's own folders are not searched. */
const search = async (folder: string, root: string, depth: number): Promise<Found[]> => {
  if (await isFile(join(folder, SKILL_FILE))) return [{ folder, root }];
  if (depth === 0) return [];
  const found: Found[] = [];
  const entries = await readdir(folder, { withFileTypes: true });
  for (const { name } of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
    if (name.startsWith('.')) continue;
    const path = join(folder, name);
    try {
      const real = await realpath(path);
      if (isWithin(root, real) && (await stat(real)).isDirectory())
        found.push(...(await search(path, root, depth - 1)));
    } catch {
      // A link to nothing, or a folder that may not be entered, holds no skill.
    }
  }
  return found;
};

const load = async ({ folder, root }: Found, { limits, log }: HostSkillDeps): Promise<AgentSkill | null> => {
  const refuse = (rule: string): null => {
    log.warn({ folder, rule }, 'A skill of the host was left out');
    return null;
  };
  try {
    const { files, leftOut } = await readFolderFiles(folder, root);
    for (const { path, reason } of leftOut)
      log.warn({ folder, file: path, reason }, 'A file of a host skill was left out');
    const { skill } = readSkillFolder(files);
    if (skill.name !== basename(folder))
      return refuse(`${SKILL_FILE}: name must be that of the folder, ${basename(folder)}, and is ${skill.name}`);
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
    if (error instanceof SkillFileError) return refuse(`${SKILL_FILE}: ${error.message}`);
    if (error instanceof FolderTooLargeError) return refuse(error.message);
    throw error;
  }
};

/** Skills of modules, then of every root. A folder that breaks a rule is left out and told in the log; a missing root throws. */
export const loadHostSkills = async (deps: HostSkillDeps): Promise<HostSkills> => {
  const skills = new Map(deps.ofModules.map((skill) => [skill.name, skill]));
  for (const root of deps.roots) {
    const real = await realFolder(root);
    for (const found of await search(real, real, deps.searchDepth)) {
      const skill = await load(found, deps);
      if (skill === null) continue;
      if (skills.has(skill.name))
        deps.log.warn(
          { folder: found.folder, rule: 'name is that of an earlier one' },
          'A skill of the host was left out',
        );
      else skills.set(skill.name, skill);
    }
  }
  return skills;
};
