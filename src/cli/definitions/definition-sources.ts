import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { DefinitionDocument, DefinitionProblem } from '../../contract/definition-document.ts';
import { AcpError } from '../../contract/errors.ts';
import { unreadableFile } from '../files/file-fault.ts';
import { isFolder, readText } from '../files/read-body.ts';
import type { Terminal } from '../output/terminal.ts';

const definitionFile = /\.(ya?ml|json)$/i;

/** Entries of a folder in code-point order, hidden ones left out. */
const entriesOf = async (folder: string): Promise<readonly Dirent[]> => {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries.filter(({ name }) => !name.startsWith('.')).sort((left, right) => (left.name < right.name ? -1 : 1));
  } catch (cause) {
    throw unreadableFile(folder, cause, { ENOENT: 'it does not exist any more' });
  }
};

/** Definition files below a folder. A folder that cannot be read is reported, and the others are looked through. */
const filesBelow = async (folder: string, report: (path: string, error: unknown) => void): Promise<string[]> => {
  const files: string[] = [];
  try {
    for (const entry of await entriesOf(folder)) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) files.push(...(await filesBelow(path, report)));
      else if (definitionFile.test(entry.name)) files.push(path);
    }
  } catch (error) {
    report(folder, error);
  }
  return files;
};

export interface DefinitionSources {
  readonly documents: readonly DefinitionDocument[];
  readonly problems: readonly DefinitionProblem[];
}

const unreadable = (file: string, error: unknown): DefinitionProblem => {
  if (!(error instanceof AcpError)) throw error;
  const message = error.message.startsWith(`${file} `) ? `It ${error.message.slice(file.length + 1)}` : error.message;
  return { file, line: null, name: null, field: '', message };
};

/** Every definition of the named files and folders, and of stdin for `-`. What cannot be read is one of the problems. */
export const readDefinitions = async (paths: readonly string[], terminal: Terminal): Promise<DefinitionSources> => {
  if (paths.length === 0)
    throw new AcpError(
      'validation-failed',
      'Name the definitions with -f: a file, a folder, or - for the standard input.',
    );
  const { parseDefinitionDocuments } = await import('../../core/documents/definition-documents.ts');
  const documents: DefinitionDocument[] = [];
  const problems: DefinitionProblem[] = [];
  const report = (path: string, error: unknown) => problems.push(unreadable(path, error));
  for (const path of paths) {
    const files = path !== '-' && (await isFolder(path)) ? await filesBelow(path, report) : [path];
    for (const file of files) {
      const shown = file === '-' ? '<stdin>' : file;
      try {
        const read = parseDefinitionDocuments(await readText(file, terminal), shown);
        documents.push(...read.documents);
        problems.push(...read.problems);
      } catch (error) {
        report(shown, error);
      }
    }
  }
  if (documents.length === 0 && problems.length === 0)
    throw new AcpError('validation-failed', `There is no definition in ${paths.join(', ')}.`);
  return { documents, problems };
};

export const textList = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

const references = ({ value }: DefinitionDocument): string[] => [
  ...textList(value['callableAgentNames']),
  ...textList([value['sharedInstructionsName']]),
];

/** Documents so that what one refers to comes before it; members of a cycle keep their order. */
export const inDependencyOrder = (documents: readonly DefinitionDocument[]): DefinitionDocument[] => {
  const byName = new Map(documents.map((document) => [document.value['name'], document]));
  const ordered = new Set<DefinitionDocument>();
  const entered = new Set<DefinitionDocument>();
  const visit = (document: DefinitionDocument): void => {
    if (entered.has(document)) return;
    entered.add(document);
    for (const name of references(document)) {
      const target = byName.get(name);
      if (target !== undefined) visit(target);
    }
    ordered.add(document);
  };
  for (const document of documents) visit(document);
  return [...ordered];
};
