import {
  type Document,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseAllDocuments,
  visit,
} from 'yaml';
import type { DefinitionDocument, DefinitionDocuments, DefinitionProblem } from '../../contract/definition-document.ts';
import { yamlFault } from './yaml-fault.ts';

// Aliases multiply what a small file says.
const maxAliases = 100;

const startOf = (node: unknown): number | null =>
  isScalar(node) || isCollection(node) ? ((node as Node).range?.[0] ?? null) : null;

/** The part of a path behind a member's name; null when the path does not begin with it. */
const behind = (path: string, name: string): string | null => {
  if (!path.startsWith(name)) return null;
  const rest = path.slice(name.length);
  if (rest === '' || rest.startsWith('[')) return rest;
  return rest.startsWith('.') ? rest.slice(1) : null;
};

/** Offset of a member, or of the nearest thing around it. Names may hold dots: the longest that fits is taken. */
const offsetOf = (node: unknown, path: string, nearest: number): number => {
  if (isMap(node)) {
    const fitting = node.items
      .map(({ key, value }) => {
        const name = isScalar(key) ? String(key.value) : '';
        return { key, value, name, rest: behind(path, name) };
      })
      .filter(({ rest, name }) => rest !== null && name !== '')
      .sort((a, b) => b.name.length - a.name.length)[0];
    if (fitting === undefined) return nearest;
    return offsetOf(fitting.value, fitting.rest ?? '', startOf(fitting.key) ?? nearest);
  }
  const index = isSeq(node) ? /^\[(\d+)\]\.?(.*)$/s.exec(path) : null;
  if (!isSeq(node) || index === null) return nearest;
  const item = node.items[Number(index[1])];
  return offsetOf(item, index[2] ?? '', startOf(item) ?? nearest);
};

/** What YAML can write and JSON, which a definition is, cannot; null when there is nothing of it. */
const beyondJson = (document: Document): string | null => {
  let fault: string | null = null;
  visit(document, {
    Scalar: (_key, { value }) => {
      if (typeof value !== 'number' || Number.isFinite(value)) return undefined;
      fault = 'A definition cannot hold .inf or .nan.';
      return visit.BREAK;
    },
    Pair: (_key, { key }) => {
      if (isScalar(key)) return undefined;
      fault = 'Lists, mappings and aliases cannot be names of fields.';
      return visit.BREAK;
    },
  });
  return fault;
};

const parse = (text: string, lineCounter: LineCounter): readonly Document[] => {
  const options = { version: '1.2', schema: 'core', prettyErrors: false, logLevel: 'silent', lineCounter } as const;
  const parsed = parseAllDocuments(text, options);
  return Array.isArray(parsed) ? parsed : [];
};

/** As JSON has it. Throws TypeError for an alias inside what it stands for, ReferenceError for too many. */
const plainValue = (document: Document): unknown => {
  const text = JSON.stringify(document.toJS({ maxAliasCount: maxAliases }));
  return text === undefined ? null : JSON.parse(text);
};

/**
 * The YAML documents of a text, one definition each; documents without content are left out. JSON is YAML.
 * Never throws: what cannot be read is a problem with its line, and all problems are reported.
 */
export const parseDefinitionDocuments = (text: string, file: string): DefinitionDocuments => {
  const lines = new LineCounter();
  const lineAt = (offset: number): number => Math.max(1, lines.linePos(offset).line);
  const documents: DefinitionDocument[] = [];
  const problems: DefinitionProblem[] = [];
  const report = (line: number | null, message: string) =>
    problems.push({ file, line, name: null, field: '', message });
  const read = (document: Document): void => {
    const start = startOf(document.contents);
    const line = lineAt(start ?? document.range?.[0] ?? 0);
    for (const failure of [...document.errors, ...document.warnings])
      report(lineAt(failure.pos[0]), `This is not valid YAML: ${yamlFault(failure)}`);
    if (document.errors.length + document.warnings.length > 0) return;
    if (document.contents === null) return;
    const foreign = beyondJson(document);
    if (foreign !== null) {
      report(line, foreign);
      return;
    }
    const value = plainValue(document);
    if (value === null) return;
    if (!isMap(document.contents)) report(line, 'A definition must be a mapping of fields.');
    else {
      const lineOf = (path: string) => lineAt(offsetOf(document.contents, path, start ?? 0));
      documents.push({ file, line, value: value as DefinitionDocument['value'], lineOf });
    }
  };
  try {
    for (const document of parse(text, lines)) read(document);
  } catch (error) {
    // Reading recurses, and refuses aliases that multiply or contain themselves: nobody writes such a file by hand.
    if (![RangeError, ReferenceError, TypeError].some((kind) => error instanceof kind)) throw error;
    report(null, 'The values are nested too deeply, or aliases repeat too much.');
  }
  return { documents, problems };
};
