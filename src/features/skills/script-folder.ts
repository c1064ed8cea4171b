import { constants } from 'node:fs';
import { chmod, lstat, mkdtemp, open, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { makeFolder } from '../../core/files/make-folder.ts';
import { privateFileMode, privateFolderMode } from '../../core/files/private-file.ts';
import { fileBytes, scriptFilePath } from '../../core/skill-folder/skill-folder.ts';
import type { AgentSkill } from './host-skills.ts';

/** A private folder with the skill's files at their relative names. */
export const makeScriptFolder = async (skill: AgentSkill): Promise<string> => {
  // Real, so that what a process says about its working folder can be compared with it.
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'acp-skill-')));
  const files = [
    ...skill.resources.map(({ name, content, encoding }) => ({ path: name, content: fileBytes(content, encoding) })),
    // Scripts come last: one of them is what runs, whatever a resource is called. Siblings may be imported by it.
    ...skill.scripts.map((script) => ({ path: scriptFilePath(script), content: script.content })),
  ];
  try {
    for (const { path, content } of files) {
      makeFolder(dirname(join(folder, path)), privateFolderMode);
      await writeFile(join(folder, path), content, { mode: privateFileMode });
    }
    return folder;
  } catch (error) {
    await removeScriptFolder(folder);
    throw error;
  }
};

// Looks at a folder that cannot be listed; Node has no name for this flag of Linux.
const openPath = 0o10000000;

/** Gives a folder back to its owner. What is no folder, or was exchanged for a link, is left alone. */
const reopen = async (folder: string): Promise<void> => {
  if (process.platform !== 'linux') {
    if ((await lstat(folder)).isDirectory()) await chmod(folder, privateFolderMode);
    return;
  }
  const handle = await open(folder, constants.O_DIRECTORY | constants.O_NOFOLLOW | openPath);
  try {
    await chmod(`/proc/self/fd/${handle.fd}`, privateFolderMode);
  } finally {
    await handle.close();
  }
};

const reopenAll = async (folder: string): Promise<void> => {
  await reopen(folder);
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await reopenAll(join(folder, entry.name));
};

const remove = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true, maxRetries: 3 });

/** Removes the folder of a script, also where the script has closed folders to everybody. */
export const removeScriptFolder = async (folder: string): Promise<void> => {
  try {
    await remove(folder);
  } catch {
    // The second attempt throws what is in the way.
    await reopenAll(folder);
    await remove(folder);
  }
};
