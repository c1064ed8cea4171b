import { realpath, stat } from 'node:fs/promises';
import { relative } from 'node:path';
import { AcpError, type FieldError } from '../contract/errors.ts';
import type { AgentSkillRequest } from '../features/skills/skills.schema.ts';
import type { Terminal } from './output/terminal.ts';
import { readText } from './read-body.ts';

/** A skill as it is to be saved. */
export interface SkillSource {
  /** Folder or file that it comes from. */
  readonly from: string;
  readonly body: AgentSkillRequest;
  /** What of the folder the skill does not hold. */
  readonly notes: readonly string[];
  /** The path of a member, told as the file that it comes from. */
  place(path: string): string;
}

/** Levels below a named folder that are searched for skills, as the service searches its roots by default. */
const SEARCH_DEPTH = 2;

const reasons = {
  binary: 'it is no UTF-8 text, and a skill holds text only',
  outside: 'it leads out of the folder',
  unreadable: 'it cannot be read',
  hidden: 'it is hidden, and may hold secrets',
  generated: 'programs make it',
} as const;

export const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // A path that is not there is told by the attempt to read it.
    return false;
  }
};

const readFolder = async (path: string): Promise<SkillSource> => {
  const { readFolderFiles, FolderTooLargeError } = await import('../core/skill-folder/read-files.ts');
  const { readSkillFolder, scriptFilePath, SkillFileError } = await import('../core/skill-folder/skill-folder.ts');
  try {
    const { files, leftOut } = await readFolderFiles(path, await realpath(path));
    const { skill, notes } = readSkillFolder(files);
    const { metadata, resources, scripts } = skill;
    const fileOf = (list: string, index: number): string | undefined => {
      const script = scripts[index];
      if (list === 'resources') return resources[index]?.name;
      return script === undefined ? undefined : scriptFilePath(script);
    };
    return {
      from: path,
      body: { ...skill, metadata: { ...metadata }, resources: [...resources], scripts: [...scripts] },
      notes: [...notes, ...leftOut.map((file) => `${file.path} is left out: ${reasons[file.reason]}.`)],
      place(member) {
        const [, list = '', index, rest = ''] = /^(resources|scripts)\[(\d+)\]\.?(.*)$/.exec(member) ?? [];
        const file = index === undefined ? undefined : fileOf(list, Number(index));
        return file === undefined ? member : `${file} (${rest})`;
      },
    };
  } catch (error) {
    if (!(error instanceof SkillFileError || error instanceof FolderTooLargeError)) throw error;
    throw new AcpError('validation-failed', `${path}: ${error.message}`);
  }
};

/** The folder itself where it is a skill, else the skills in the folders below. */
const readFolders = async (path: string): Promise<readonly SkillSource[]> => {
  const { findSkillFolders } = await import('../core/skill-folder/find-folders.ts');
  const root = await realpath(path);
  const found = await findSkillFolders(root, SEARCH_DEPTH);
  if (found.length === 0)
    throw new AcpError(
      'validation-failed',
      `${path}: There is no SKILL.md, neither there nor at most ${SEARCH_DEPTH} folders below.`,
    );
  const named = found.map((folder) =>
    folder === root ? path : `${path.replace(/\/+$/, '')}/${relative(root, folder)}`,
  );
  return Promise.all(named.map(readFolder));
};

const read = async (path: string, terminal: Terminal): Promise<readonly SkillSource[]> => {
  if (path !== '-' && (await isFolder(path))) return readFolders(path);
  const { parseDefinitionDocuments } = await import('../core/definition-documents.ts');
  const { documents, problems } = parseDefinitionDocuments(await readText(path, terminal), path);
  const [problem] = problems;
  if (problem !== undefined)
    throw new AcpError('validation-failed', `${path}:${problem.line ?? 1}: ${problem.message}`);
  // The service checks the body, so nothing is relied on here.
  return documents.map(({ value }) => ({
    from: path,
    body: value as unknown as AgentSkillRequest,
    notes: [],
    place: (member) => member,
  }));
};

/** All skills of folders, folders of folders and YAML files. Throws before anything is saved when one cannot be read. */
export const readSkillSources = async (
  paths: readonly string[],
  terminal: Terminal,
): Promise<readonly SkillSource[]> => {
  const sources: SkillSource[] = [];
  for (const path of paths) sources.push(...(await read(path, terminal)));
  for (const [index, { body, from }] of sources.entries()) {
    if (typeof body.name !== 'string' || body.name === '')
      throw new AcpError('validation-failed', `${from}: A skill needs a name.`);
    const first = sources.findIndex((other) => other.body.name === body.name);
    if (first < index)
      throw new AcpError(
        'validation-failed',
        `${sources[first]?.from} and ${from} are both the skill "${body.name}"; nothing was saved.`,
      );
  }
  return sources;
};

/** The refusal of a skill with the file and the folder that it is about. */
export const refusedSource = (error: AcpError, { from, body, place }: SkillSource): AcpError => {
  const errors = error.details.errors?.map((one): FieldError => ({ ...one, path: place(one.path) }));
  const [only] = errors ?? [];
  const detail =
    errors === undefined || only === undefined
      ? error.message
      : errors.length === 1
        ? `${only.path} ${only.message}.`
        : `${errors.length} faults.`;
  return new AcpError(error.code, `Skill "${body.name}" of ${from}: ${detail}`, {
    details: { ...error.details, ...(errors === undefined ? {} : { errors }) },
  });
};
