import { spelled } from './canonical.ts';
import type { ConfigProblem } from './problem.ts';
import { type ConfigSource, describeSource, type RawMap, type RawScalar, rawText } from './raw-value.ts';

/** Values that arrive one by one, by path: variables and flags. */
interface TextSource {
  readonly values: RawMap;
  readonly problems: readonly ConfigProblem[];
}

interface Branch {
  readonly children: Map<string, Branch>;
  value: RawScalar | null;
  readonly source: ConfigSource;
}

class TextTree {
  readonly problems: ConfigProblem[] = [];
  readonly #root: Branch;

  constructor() {
    this.#root = { children: new Map(), value: null, source: { kind: 'default' } };
  }

  set(path: readonly string[], value: string, source: ConfigSource): void {
    let branch = this.#root;
    const key = spelled(path);
    for (const name of key) {
      const next = branch.children.get(name) ?? { children: new Map(), value: null, source };
      branch.children.set(name, next);
      branch = next;
    }
    if (branch.value !== null && source.kind === 'variable') {
      const message = `expected this key once; ${describeSource(branch.value.source)} differs in case only`;
      this.problems.push({ key: key.join(':'), source, code: 'conflict', message });
    }
    branch.value = rawText(value, source);
  }

  values(): RawMap {
    return this.#toMap(this.#root, []);
  }

  #toMap(branch: Branch, path: readonly string[]): RawMap {
    const entries = [...branch.children].map(([name, child]) => {
      const key = [...path, name];
      if (child.value !== null && child.children.size > 0) {
        const message = 'expected either one value for the whole or values for its parts; both are given';
        this.problems.push({ key: key.join(':'), source: child.value.source, code: 'conflict', message });
      }
      return { name, value: child.value ?? this.#toMap(child, key), source: child.source };
    });
    return { kind: 'map', entries, source: branch.source };
  }
}

/** Variables `Service__A__B` and `Host__A__B`; all others are none of ours. */
export const readVariables = (env: Readonly<Record<string, string | undefined>>): TextSource => {
  const tree = new TextTree();
  const names = Object.keys(env).filter((name) => /^(service|host)__/i.test(name));
  for (const name of names.sort()) {
    const value = env[name];
    if (value !== undefined) tree.set(name.split('__'), value, { kind: 'variable', name });
  }
  return { values: tree.values(), problems: tree.problems };
};

export interface Flags {
  /** Texts of `--set`, each `Service:A:B=value`. */
  readonly args: readonly string[];
  readonly url: string | null;
  readonly prefix: string | null;
}

/** Flags of the command line. Of a repeated one the last counts. */
export const readFlags = (flags: Flags): TextSource => {
  const tree = new TextTree();
  for (const arg of flags.args) {
    const equals = arg.indexOf('=');
    const key = equals === -1 ? arg : arg.slice(0, equals);
    const path = key.trim().split(':');
    const source: ConfigSource = { kind: 'flag', name: `--set ${key.trim()}` };
    if (equals === -1) {
      // The text may be a secret that lost its key, so it is not repeated.
      const message = 'expected --set Service:A:B=value or --set Host:A:B=value';
      tree.problems.push({ key: null, source: { kind: 'flag', name: '--set' }, code: 'syntax', message });
    } else tree.set(path, arg.slice(equals + 1), source);
  }
  if (flags.url !== null) tree.set(['Host', 'Url'], flags.url, { kind: 'flag', name: '--url' });
  if (flags.prefix !== null) tree.set(['Host', 'Prefix'], flags.prefix, { kind: 'flag', name: '--prefix' });
  return { values: tree.values(), problems: tree.problems };
};
