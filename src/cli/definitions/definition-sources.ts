import type { DefinitionDocument, DefinitionProblem } from '../../contract/definition-document.ts';
import { AcpError } from '../../contract/errors.ts';
import { unreadableFile } from '../files/file-fault.ts';
import { isFolder, readText } from '../files/read-body.ts';
import type { Terminal } from '../output/terminal.ts';

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
  const [{ parseDefinitionDocuments }, { definitionFilesBelow }] = await Promise.all([
    import('../../core/documents/definition-documents.ts'),
    import('../../core/documents/definition-files.ts'),
  ]);
  const documents: DefinitionDocument[] = [];
  const problems: DefinitionProblem[] = [];
  const report = (path: string, error: unknown) => problems.push(unreadable(path, error));
  const reportUnreadable = (path: string, cause: unknown) =>
    report(path, unreadableFile(path, cause, { ENOENT: 'it does not exist any more' }));
  for (const path of paths) {
    const isBelow = path !== '-' && (await isFolder(path));
    const files = isBelow ? await definitionFilesBelow(path, reportUnreadable) : [path];
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
