/** Which test files may notice a setting: files that have its name in their text, or that import test code with its name. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const imported = /^(?:import|export)\b[^;]*?\bfrom '(\.[^']+)'/gm;
/** They compare what is written about settings and not what settings do, or take minutes. */
const isLeftOut = (file) => /^test\/(?:core\/config|docs|architecture|fleet|mcp-conformance|sweeps)\//.test(file);
/** Every test goes through them, and what they set is set in each. */
const everywhere = /\/test\/support\/(?:app|store|program)\.ts$/;

export const createCandidates = (root, most) => {
  const texts = new Map();
  const textOf = (path) => {
    if (!texts.has(path)) texts.set(path, existsSync(path) ? readFileSync(path, 'utf8') : '');
    return texts.get(path);
  };
  const closureOf = (path, found = new Set()) => {
    for (const [, other] of textOf(path).matchAll(imported)) {
      const next = resolve(dirname(path), other);
      if (found.has(next) || !next.startsWith(join(root, 'test')) || everywhere.test(next)) continue;
      found.add(next);
      closureOf(next, found);
    }
    return found;
  };
  const files = globSync('test/**/*.test.{ts,tsx}', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !isLeftOut(file))
    .map((file) => {
      const path = join(root, file);
      return { file, own: textOf(path), shared: [...closureOf(path)].map(textOf).join('\n') };
    });

  return (key) => {
    const names = key.split(':').filter((name) => name !== '*');
    // As a member of a file, or in a key that is written as one text.
    const leaf = new RegExp(`(?:\\b|__|:)${names.at(-1)}(?:['"]?:|__|['"=}])|(?:\\b|__|:)${names.at(-1)}\\b[,\\]]`);
    const sections = names.slice(1, -1).map((name) => new RegExp(`(?:\\b|__)${name}(?:\\b|__)`));
    const scoreOf = ({ file, own, shared }) => {
      const inOwn = leaf.test(own);
      if (!inOwn && !leaf.test(shared)) return 0;
      const missing = sections.filter((section) => !section.test(own) && !section.test(shared)).length;
      if (missing > 0) return 0;
      const near = sections.filter((section) => section.test(own)).length;
      const slow = /^test\/(?:cli|e2e|tui)\//.test(file) ? 3 : 0;
      return 10 + (inOwn ? 8 : 0) + 2 * near - slow - Math.min(own.length / 20_000, 3);
    };
    return files
      .map((one) => ({ file: one.file, score: scoreOf(one) }))
      .filter(({ score }) => score > 0)
      .sort((left, right) => right.score - left.score)
      .slice(0, most)
      .map(({ file }) => file);
  };
};
