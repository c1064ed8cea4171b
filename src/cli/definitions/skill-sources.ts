import { realpath } from 'node:fs/promises';
import { relative } from 'node:path';
import { AcpError, type FieldError } from '../../contract/errors.ts';
import type { AgentSkillRequest } from '../../features/skills/skills.schema.ts';
import { isFolder, readText } from '../files/read-body.ts';
import type { Terminal } from '../output/terminal.ts';

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
const searchDepth = 2;

const reasons = {
  special: 'it is no file, but a pipe or a device',
  outside: 'it leads out of the folder',
  unreadable: 'it cannot be read',
  hidden: 'it is hidden, and may hold secrets',
  generated: 'programs make it',
} as const;

const readFolder = async (path: string): Promise<SkillSource> => {
  const { readFolderFiles, FolderTooLargeError } = await import('../../core/skill-folder/read-files.ts');
  const { readSkillFolder, scriptFilePath, SkillFileError } = await import('../../core/skill-folder/skill-folder.ts');
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

/** What became of one folder or document: a skill, or why it is none. */
export type ReadSource = SkillSource | AcpError;

const readOrRefuse = async (path: string): Promise<ReadSource> => {
  try {
    return await readFolder(path);
  } catch (error) {
    if (error instanceof AcpError) return error;
    throw error;
  }
};

/** The folder itself where it is a skill, else the skills in the folders below. */
const readFolders = async (path: string): Promise<readonly ReadSource[]> => {
  const { findSkillFolders } = await import('../../core/skill-folder/find-folders.ts');
  const root = await realpath(path);
  const folders = await findSkillFolders(root, searchDepth);
  if (folders.length === 0)
    throw new AcpError(
      'validation-failed',
      `${path}: There is no SKILL.md, neither there nor at most ${searchDepth} folders below.`,
    );
  const shown = folders.map((folder) =>
    folder === root ? path : `${path.replace(/\/+$/, '')}/${relative(root, folder)}`,
  );
  return Promise.all(shown.map(readOrRefuse));
};

const read = async (path: string, terminal: Terminal): Promise<readonly ReadSource[]> => {
  if (path !== '-' && (await isFolder(path))) return readFolders(path);
  const { parseDefinitionDocuments } = await import('../../core/documents/definition-documents.ts');
  const { documents, problems } = parseDefinitionDocuments(await readText(path, terminal), path);
  const faults = problems.map(({ line, message }) => `${path}:${line ?? 1}: ${message}`);
  const { kindOf, unknownKind } = await import('../declarations/declaration-kinds.ts');
  for (const { lineOf, value } of documents) {
    const { kind: word = 'Skill' } = value;
    const kind = kindOf(word);
    const problem =
      kind === undefined
        ? unknownKind(word)
        : `is ${kind.kind}, and this command is for skills; \`acp apply\` takes every kind`;
    if (kind?.kind !== 'Skill') faults.push(`${path}:${lineOf('kind')}: kind ${problem}`);
  }
  if (faults.length > 0) throw new AcpError('validation-failed', faults.join('\n'));
  // The service checks the body, so nothing is relied on here.
  return documents.map(({ lineOf, value: { kind: _kind, ...body } }) => ({
    from: path,
    body: body as unknown as AgentSkillRequest,
    notes: [],
    place: (member) => `${member} (line ${lineOf(member)})`,
  }));
};

/**
 * All skills of folders, folders of folders and YAML files; a folder that cannot be read does not stop the others. Throws
 * before anything is saved where it is not clear what is meant.
 */
export const readSkillSources = async (
  paths: readonly string[],
  terminal: Terminal,
): Promise<{ readonly sources: readonly SkillSource[]; readonly refused: readonly AcpError[] }> => {
  const all: ReadSource[] = [];
  for (const path of paths) all.push(...(await read(path, terminal)));
  const refused = all.filter((one) => one instanceof AcpError);
  const sources = all.filter((one): one is SkillSource => !(one instanceof AcpError));
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
  return { sources, refused };
};

/** The refusal of a skill with the file and the folder that it is about. */
export const refusedSource = (error: AcpError, { from, body, place }: SkillSource): AcpError => {
  const errors = error.details.errors?.map((one): FieldError => ({ ...one, path: place(one.path) }));
  const [only] = errors ?? [];
  const detail =
    errors === undefined || only === undefined
      ? error.message
      : errors.length === 1
        ? `${only.path} ${only.message}${only.message.endsWith('?') ? '' : '.'}`
        : `${errors.length} faults.`;
  return new AcpError(error.code, `Skill "${body.name}" of ${from}: ${detail}`, {
    details: { ...error.details, ...(errors === undefined ? {} : { errors }) },
  });
};
