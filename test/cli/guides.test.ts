import assert from 'node:assert/strict';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandEntries } from '../../src/cli/command-host.ts';
import { buildProgram } from '../../src/cli/program.ts';
import { ConfigError, describeProblems, loadConfig } from '../../src/core/config/index.ts';

const root = join(import.meta.dirname, '../..');
const guides = ['README.md', 'docs/getting-started.md'];

const pages = ['README.md', ...globSync('docs/*.md', { cwd: root })];

/** Command lines of `acp` in the shell examples of a page and in its sentences, as words. */
const commandLines = (text: string): string[][] => {
  const examples = [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
    .flatMap(([, block = '']) => block.replaceAll(/\\\n\s*/g, ' ').split(/\n|&&|\||\$\(/))
    .map((line) => line.replace(/(^|\s)#.*$/, '').trim())
    .flatMap((line) => /^(?:\w+=\S+ )*(?:bin\/)?acp (.+)$/.exec(line)?.[1] ?? []);
  const sentences = text.replaceAll(/```[\s\S]*?```/g, '');
  const named = [...sentences.matchAll(/`(?:\w+=\S+ )*(?:bin\/)?acp ([a-z][^`|]*)`/g)].map(([, line = '']) => line);
  return [...examples, ...named].map((line) => line.split(/\s+/));
};

test('every command and option that a page shows exists', () => {
  const program = buildProgram();
  // The longest name first: some are the beginning of others.
  const entries = commandEntries(program).toSorted((a, b) => b.name.length - a.name.length);
  const globals = program.options.flatMap(({ long }) => long ?? []);
  let seen = 0;
  for (const page of pages)
    for (const words of commandLines(readFileSync(join(root, page), 'utf8'))) {
      const line = words.join(' ');
      seen += 1;
      // A group, such as `acp runs`.
      if (entries.some(({ name }) => name.startsWith(`${line} `))) continue;
      const found = entries.find(({ name }) => name === words.slice(0, name.split(' ').length).join(' '));
      assert.ok(found !== undefined, `${page}: acp ${line}`);
      const options = found.command.options.flatMap(({ long, short }) => [long, short]);
      const known = new Set([...globals, '--help', ...options]);
      for (const word of words.filter((part) => /^--?[a-z]/.test(part)))
        assert.ok(known.has(word.replace(/[),.;=].*$/, '')), `${page}: acp ${line}: ${word}`);
    }
  assert.ok(seen > 250, `${seen} command lines were seen`);
});

/** What a piece of a page leaves to the rest of a configuration: files, values of other keys, models of providers. */
const leftOut = /there is no such file|has no value|expected a model that \w+ lists/;

test('settings that a page shows are accepted', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-guides-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const configPath = join(folder, 'service.yaml');
  const problemsIn = (block: string): readonly string[] => {
    writeFileSync(configPath, block);
    const named = [...block.matchAll(/\$\{env:(\w+)\}/g)].map(([, name = '']) => [name, 'x'.repeat(40)]);
    try {
      loadConfig({ configPath, env: Object.fromEntries(named), cwd: folder });
      return [];
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.problems.map((problem) => describeProblems([problem])).filter((text) => !leftOut.test(text));
    }
  };
  let seen = 0;
  for (const page of pages)
    for (const [, block = ''] of readFileSync(join(root, page), 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```/gm)) {
      if (!/^(?:Host|Service):/m.test(block)) continue;
      seen += 1;
      assert.deepEqual(problemsIn(block), [], `${page}:\n${block}`);
    }
  assert.ok(seen > 15, `${seen} blocks of settings were seen`);
});

test('every page that the guides link to exists', () => {
  for (const guide of guides) {
    const text = readFileSync(join(root, guide), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g))
      assert.ok(existsSync(join(root, dirname(guide), target)), `${guide}: ${target}`);
  }
});
