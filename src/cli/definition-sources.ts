import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { DefinitionDocument, DefinitionProblem } from '../contract/definition-document.ts';
import { AcpError } from '../contract/errors.ts';
import type { Terminal } from './output/terminal.ts';
import { readText } from './read-body.ts';

const definitionFile = /\.(ya?ml|json)$/i;

const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // A path that is not there is told by the attempt to read it.
    return false;
  }
};

/** Definition files below a folder, in code-point order; hidden files and folders are left out. */
const filesBelow = async (folder: string): Promise<string[]> => {
  const entries = await readdir(folder, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter(({ name }) => !name.startsWith('.'))
      .sort((left, right) => (left.name < right.name ? -1 : 1))
      .map(async (entry) => {
        const path = join(folder, entry.name);
        if (entry.isDirectory()) return filesBelow(path);
        return definitionFile.test(entry.name) ? [path] : [];
      }),
  );
  return found.flat();
};

export interface DefinitionSources {
  readonly documents: readonly DefinitionDocument[];
  readonly problems: readonly DefinitionProblem[];
}

/** Every definition of the named files and folders, and of stdin for `-`. */
export const readDefinitions = async (paths: readonly string[], terminal: Terminal): Promise<DefinitionSources> => {
  if (paths.length === 0)
    throw new AcpError(
      'validation-failed',
      'Name the definitions with -f: a file, a folder, or - for the standard input.',
    );
  const { parseDefinitionDocuments } = await import('../core/definition-documents.ts');
  const documents: DefinitionDocument[] = [];
  const problems: DefinitionProblem[] = [];
  for (const path of paths) {
    const files = path !== '-' && (await isFolder(path)) ? await filesBelow(path) : [path];
    for (const file of files) {
      const read = parseDefinitionDocuments(await readText(file, terminal), file === '-' ? '<stdin>' : file);
      documents.push(...read.documents);
      problems.push(...read.problems);
    }
  }
  if (documents.length === 0 && problems.length === 0)
    throw new AcpError('validation-failed', `There is no definition in ${paths.join(', ')}.`);
  return { documents, problems };
};

const textList = (value: unknown): string[] =>
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
