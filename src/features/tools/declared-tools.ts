import { readFile, stat } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml';
import { definitionFilesBelow } from '../../core/documents/definition-files.ts';
import { yamlFault } from '../../core/documents/yaml-fault.ts';
import {
  type FieldPath,
  formatPath,
  type ToolPlace,
  type ToolProblem,
  type ToolRegistration,
} from '../../engine/tools/index.ts';
import type { OutboundHttp } from '../../providers/http/outbound.ts';
import { readDeclaredTool } from './declared-tool.document.ts';
import { isMembers } from './declared-tool.fields.ts';
import type { ReferenceKind } from './declared-tool.template.ts';

export interface DeclaredToolDeps {
  readonly http: OutboundHttp;
  /** `Service:Egress:AllowPrivateNetworkTargets`. */
  readonly allowPrivate: boolean;
  /**
   * The value of `${env:…}`, `${file:…}` (an absolute path) or `${key:…}`; null when there is none. Asked at start and
   * again for each call, so that a rotated secret counts at once.
   */
  resolveReference(kind: ReferenceKind, name: string): string | null;
}

/** What was read, for the registry: problems do not keep the rest from being read. */
export interface LoadedTools {
  readonly registrations: readonly ToolRegistration[];
  readonly problems: readonly ToolProblem[];
}

const fileProblem = (file: string, message: string, line: number | null = null): ToolProblem => ({
  file,
  line,
  tool: null,
  field: '',
  message,
});

interface Located {
  readonly node: Node | null;
  /** Where its name begins or, in a list, the node itself. */
  readonly offset: number;
}

/** One step from a node to its member or item; null when there is none. */
const step = (node: unknown, part: string | number): Located | null => {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
    if (pair === undefined || !isScalar(pair.key)) return null;
    return { node: pair.value as Node | null, offset: pair.key.range?.[0] ?? 0 };
  }
  if (!isSeq(node)) return null;
  const item = node.items[Number(part)] as Node | undefined;
  return item === undefined ? null : { node: item, offset: item.range?.[0] ?? 0 };
};

/** The node at a path. Where it is missing, the place of the last part that exists. */
const locate = (document: Document, path: FieldPath): Located => {
  const behind = (node: Node | null): Node | null => (isAlias(node) ? (node.resolve(document) ?? null) : node);
  let place: Located = { node: document.contents, offset: document.contents?.range?.[0] ?? 0 };
  for (const part of path) {
    const next = step(behind(place.node), part);
    if (next === null) return { node: null, offset: place.offset };
    place = next;
  }
  return { node: behind(place.node), offset: place.offset };
};

const scalarText = (document: Document, path: FieldPath): string | null => {
  const { node } = locate(document, path);
  if (!isScalar(node) || node.value === null) return null;
  return typeof node.value === 'string' ? node.value : (node.source ?? String(node.value));
};

const readDocument = (document: Document, file: string, lines: LineCounter, deps: DeclaredToolDeps): LoadedTools => {
  const syntax = [...document.errors, ...document.warnings];
  if (syntax.length > 0)
    return {
      registrations: [],
      problems: syntax.map((fault) =>
        fileProblem(file, `is not valid YAML: ${yamlFault(fault)}`, lines.linePos(fault.pos[0]).line),
      ),
    };
  const place = (path: FieldPath): ToolPlace => ({ file, line: lines.linePos(locate(document, path).offset).line });
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  const { definition, problems } = readDeclaredTool(value, {
    http: deps.http,
    allowPrivate: deps.allowPrivate,
    scalarText: (path) => scalarText(document, path),
    resolveReference: (kind, name) =>
      deps.resolveReference(kind, kind === 'file' && !isAbsolute(name) ? resolve(dirname(file), name) : name),
  });
  const name = isMembers(value) && typeof value['name'] === 'string' ? value['name'] : null;
  return {
    registrations: definition === null ? [] : [{ definition, place }],
    problems: problems.map(({ path, message }) => ({ ...place(path), tool: name, field: formatPath(path), message })),
  };
};

/** A document of comments only, as behind a last `---`. */
const isEmpty = ({ contents, errors }: Document): boolean =>
  errors.length === 0 && (contents === null || (isScalar(contents) && contents.value === null));

const readToolFile = async (file: string, deps: DeclaredToolDeps): Promise<LoadedTools> => {
  const text = new TextDecoder('utf-8', { fatal: true }).decode(await readFile(file));
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: lines, version: '1.2', prettyErrors: false });
  const loaded = Array.from(parsed)
    .filter((document) => !isEmpty(document as Document))
    .map((document) => {
      try {
        return readDocument(document as Document, file, lines, deps);
      } catch (error) {
        // Too many aliases, or an alias inside its own anchor, which has no end.
        if (!(error instanceof ReferenceError) && !(error instanceof RangeError)) throw error;
        const { line } = lines.linePos(locate(document as Document, []).offset);
        return { registrations: [], problems: [fileProblem(file, 'has aliases that repeat too much', line)] };
      }
    });
  return {
    registrations: loaded.flatMap(({ registrations }) => registrations),
    problems: loaded.flatMap(({ problems }) => problems),
  };
};

/** Why a file cannot be read, without a stack or a second path. */
const readFailure = (error: unknown): string => {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'does not exist';
  if (error instanceof TypeError) return 'is not UTF-8 text';
  return `cannot be read${error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''}`;
};

/**
 * Reads the declared HTTP tools of `Host:Tools`: files and folders of YAML, several documents in a file. Every mistake
 * of every document is collected; give both parts to `createToolRegistry`, which reports them together with its own.
 */
export const loadDeclaredTools = async (paths: readonly string[], deps: DeclaredToolDeps): Promise<LoadedTools> => {
  const registrations: ToolRegistration[] = [];
  const problems: ToolProblem[] = [];
  const attempt = async <T>(file: string, work: () => Promise<T>): Promise<T | null> => {
    try {
      return await work();
    } catch (error) {
      problems.push(fileProblem(file, readFailure(error)));
      return null;
    }
  };
  for (const path of paths) {
    const report = (file: string, error: unknown) => problems.push(fileProblem(file, readFailure(error)));
    const list = async () => ((await stat(path)).isDirectory() ? await definitionFilesBelow(path, report) : [path]);
    const files = (await attempt(path, list)) ?? [];
    for (const file of files) {
      const loaded = await attempt(file, () => readToolFile(file, deps));
      registrations.push(...(loaded?.registrations ?? []));
      problems.push(...(loaded?.problems ?? []));
    }
  }
  return { registrations, problems };
};
