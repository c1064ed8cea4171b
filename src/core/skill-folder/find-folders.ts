import { readdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isWithin } from './read-files.ts';
import { skillFile } from './skill-folder.ts';

const isFile = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isFile();
  } catch {
    // Nothing there, or nothing that may be looked at.
    return false;
  }
};

/**
 * Folders with a SKILL.md, the given one or at most `depth` levels below, by path. A skill's own folders are not
 * searched, nor what leads outside. `root` is a real path.
 */
export const findSkillFolders = async (root: string, depth: number): Promise<string[]> => {
  const search = async (folder: string, levels: number): Promise<string[]> => {
    if (await isFile(join(folder, skillFile))) return [folder];
    if (levels === 0) return [];
    const skills: string[] = [];
    for (const name of (await readdir(folder)).sort()) {
      if (name.startsWith('.')) continue;
      const path = join(folder, name);
      try {
        const real = await realpath(path);
        if (isWithin(root, real) && (await stat(real)).isDirectory()) skills.push(...(await search(path, levels - 1)));
      } catch {
        // A link to nothing, or a folder that may not be entered, holds no skill.
      }
    }
    return skills;
  };
  return search(root, depth);
};
