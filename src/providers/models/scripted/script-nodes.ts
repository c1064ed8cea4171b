import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type LineCounter,
  type Node,
  type YAMLMap,
} from 'yaml';
import { longestTimerMs, parseDuration } from '../../../core/config/duration.ts';
import type { ModelJson } from '../model-provider.ts';
import type { ScriptProblem } from './script-error.ts';

export type Fields = ReadonlyMap<string, Node>;

/** Reads typed values out of a YAML document and collects what is wrong, with line and field. */
export class ScriptNodes {
  readonly problems: ScriptProblem[] = [];
  readonly #file: string;
  readonly #document: Document;
  readonly #lines: LineCounter;

  constructor(file: string, document: Document, lines: LineCounter) {
    this.#file = file;
    this.#document = document;
    this.#lines = lines;
  }

  report(node: Node | null | undefined, field: string, message: string): null {
    const offset = node?.range?.[0];
    const line = offset === undefined ? null : this.#lines.linePos(offset).line;
    this.problems.push({ file: this.#file, line, field, message });
    return null;
  }

  resolve(node: unknown): Node | null {
    const target = isAlias(node) ? (node as Alias).resolve(this.#document) : node;
    return isMap(target) || isSeq(target) || isScalar(target) ? target : null;
  }

  /** The members of a mapping; unknown and repeated ones are reported. */
  fields(node: Node | null, field: string, names: readonly string[]): Fields | null {
    if (!isMap(node)) return this.report(node, field, 'must be a mapping');
    const members = new Map<string, Node>();
    for (const { key, value } of (node as YAMLMap).items) {
      const name = isScalar(key) ? String(key.value) : '';
      const path = field === '' ? name : `${field}.${name}`;
      const resolved = this.resolve(value);
      if (!names.includes(name)) this.report(key as Node, path, `is unknown; known here: ${names.join(', ')}`);
      else if (resolved === null || (isScalar(resolved) && resolved.value === null))
        this.report(key as Node, path, 'has no value');
      else members.set(name, resolved);
    }
    return members;
  }

  list(node: Node, field: string): readonly (Node | null)[] {
    if (!isSeq(node)) {
      this.report(node, field, 'must be a list');
      return [];
    }
    return node.items.map((item) => this.resolve(item));
  }

  text(node: Node | undefined, field: string): string | null {
    if (node === undefined) return null;
    const value = isScalar(node) ? node.value : undefined;
    return typeof value === 'string' ? value : this.report(node, field, 'must be a text');
  }

  nonEmptyText(node: Node | undefined, field: string): string | null {
    const value = this.text(node, field);
    return value === '' ? this.report(node, field, 'must not be empty') : value;
  }

  integer(node: Node | undefined, field: string, least: number): number | null {
    if (node === undefined) return null;
    const value = isScalar(node) ? node.value : undefined;
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= least
      ? value
      : this.report(node, field, `must be a whole number from ${least}`);
  }

  duration(node: Node | undefined, field: string): number | null {
    if (node === undefined) return null;
    const value = isScalar(node) && typeof node.value === 'string' ? parseDuration(node.value) : undefined;
    return value === undefined || value > longestTimerMs
      ? this.report(node, field, 'must be a duration such as 50ms, 2s or 1m')
      : value;
  }

  json(node: Node): ModelJson {
    return node.toJS(this.#document) as ModelJson;
  }
}
