import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import type { ConfigProblem, ConfigProblemCode } from './problem.ts';
import { type ConfigSource, type RawEntry, type RawMap, type RawValue, rawScalar } from './raw-value.ts';

/** Aliases multiply what a small file says; no configuration has this many values. */
const maxValues = 20_000;
const maxDepth = 32;
/** After this many mistakes the rest are most likely their consequences. */
const maxSyntaxProblems = 20;

/** The parser's own messages may quote the file, and with it a secret; these never do. */
const syntaxMessages: Readonly<Record<string, string>> = {
  ALIAS_PROPS: 'an alias cannot have an anchor or a tag',
  BAD_ALIAS: 'this anchor or alias is not valid',
  BAD_COLLECTION_TYPE: 'this tag does not fit the value',
  BAD_DIRECTIVE: 'this directive is not valid',
  BAD_DQ_ESCAPE: 'this escape sequence is not valid in double quotes',
  BAD_INDENT: 'the indentation is not consistent',
  BAD_PROP_ORDER: 'anchors and tags must stand before the value',
  BAD_SCALAR_START: 'a plain value cannot start with this character: put it in quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a nested block cannot stand here: check the indentation and the colons',
  BLOCK_IN_FLOW: 'a block cannot stand inside braces or brackets',
  MISSING_CHAR: 'something is missing here or above: a colon, a comma, a quote, a brace or a bracket',
  MULTILINE_IMPLICIT_KEY: 'a key must stand on one line: is a colon or a quote missing?',
  MULTIPLE_ANCHORS: 'a value can have one anchor only',
  MULTIPLE_DOCS: 'expected one YAML document; a second one starts here',
  MULTIPLE_TAGS: 'a value can have one tag only',
  RESOURCE_EXHAUSTION: 'the values are nested too deeply',
  TAB_AS_INDENT: 'tabs cannot indent YAML: use spaces',
  TAG_RESOLVE_FAILED: 'this tag is not known: expected plain YAML 1.2 values',
  UNEXPECTED_TOKEN: 'this does not belong here: check indentation, quotes, braces and brackets',
};

/** Thrown inside the walk only; becomes the one problem of a file that cannot be walked to its end. */
class WalkLimit extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/** The values of a YAML 1.2 document with their lines, or every mistake in its notation. */
export const parseYaml = (
  text: string,
  file: string,
): { values: RawMap | null; problems: readonly ConfigProblem[] } => {
  const problems: ConfigProblem[] = [];
  const report = (line: number, message: string, code: ConfigProblemCode = 'syntax'): void => {
    problems.push({ key: null, source: { kind: 'file', file, line }, code, message });
  };
  const lines = new LineCounter();
  const document = parse(text, lines);
  if (document === null) {
    report(1, 'the values are nested too deeply');
    return { values: null, problems };
  }
  for (const error of [...document.errors, ...document.warnings].slice(0, maxSyntaxProblems))
    report(Math.max(1, lines.linePos(error.pos[0]).line), syntaxMessages[error.code] ?? 'this is not valid YAML');
  if (document.directives?.yaml.explicit === true && document.directives.yaml.version !== '1.2')
    report(1, 'expected YAML 1.2; remove the %YAML directive');
  if (problems.length > 0 || document.contents === null) return { values: null, problems };
  try {
    const root = new YamlWalk(lines, file, report).read(document.contents as Node, 0);
    if (root.kind === 'map') return { values: root, problems };
    if (root.kind !== 'scalar' || root.value !== null) {
      const line = root.source.kind === 'file' ? root.source.line : 1;
      report(line, 'expected a mapping with Service and Host at the top of the file');
    }
  } catch (error) {
    if (!(error instanceof WalkLimit)) throw error;
    report(error.line, error.message);
  }
  return { values: null, problems };
};

const parse = (text: string, lineCounter: LineCounter): Document | null => {
  try {
    // Repeated keys are found in the walk: the parser compares each key with all others, which is quadratic.
    const options = { version: '1.2', schema: 'core', prettyErrors: false, uniqueKeys: false, lineCounter } as const;
    return parseDocument(text, { ...options, logLevel: 'error' });
  } catch (error) {
    // The parser recurses; thousands of nested brackets exhaust its stack.
    if (error instanceof RangeError) return null;
    throw error;
  }
};

class YamlWalk {
  readonly #lines: LineCounter;
  readonly #file: string;
  readonly #report: (line: number, message: string) => void;
  readonly #anchors = new Map<string, Node>();
  #count = 0;

  constructor(lines: LineCounter, file: string, report: (line: number, message: string) => void) {
    this.#lines = lines;
    this.#file = file;
    this.#report = report;
  }

  read(node: Node, depth: number): RawValue {
    const source = this.#place(node);
    this.#count += 1;
    if (this.#count > maxValues || depth > maxDepth) {
      const what = depth > maxDepth ? `${maxDepth} levels` : `${maxValues} values`;
      throw new WalkLimit(source.line, `the file has more than ${what}; do aliases repeat or contain themselves?`);
    }
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      if (target !== undefined) return this.read(target, depth + 1);
      this.#report(source.line, 'this alias has no anchor before it');
      return rawScalar(null, source);
    }
    const anchor = 'anchor' in node ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, node);
    if (isMap<Node, Node | null>(node)) return { kind: 'map', entries: this.#entries(node, depth), source };
    if (isSeq<Node | null>(node)) {
      const items = node.items.map((item) => (item === null ? rawScalar(null, source) : this.read(item, depth + 1)));
      return { kind: 'list', items, source };
    }
    return isScalar(node) ? rawScalar(node.value, source) : rawScalar(null, source);
  }

  #entries(map: YAMLMap<Node, Node | null>, depth: number): RawEntry[] {
    const entries = new Map<string, RawEntry>();
    for (const { key, value } of map.items) {
      const source = this.#place(key);
      if (!isScalar(key)) {
        this.#report(source.line, 'expected a name; lists, mappings and aliases cannot be names');
        continue;
      }
      // A name such as 4.10 is what stands in the file, not the number 4.1.
      const name = typeof key.value === 'string' ? key.value : (key.source ?? String(key.value));
      const first = entries.get(name);
      if (first !== undefined) {
        const line = first.source.kind === 'file' ? first.source.line : 0;
        this.#report(source.line, `${JSON.stringify(name)} is given twice here; the first time is on line ${line}`);
        continue;
      }
      entries.set(name, {
        name,
        value: value === null ? rawScalar(null, source) : this.read(value, depth + 1),
        source,
      });
    }
    return [...entries.values()];
  }

  #place(node: Node): ConfigSource & { readonly kind: 'file' } {
    const line = this.#lines.linePos(node.range?.[0] ?? 0).line;
    return { kind: 'file', file: this.#file, line: Math.max(1, line) };
  }
}
