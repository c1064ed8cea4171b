import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandEntries } from '../../src/cli/command-host.ts';
import { buildProgram } from '../../src/cli/program.ts';

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

test('every page that the guides link to exists', () => {
  for (const guide of guides) {
    const text = readFileSync(join(root, guide), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g))
      assert.ok(existsSync(join(root, dirname(guide), target)), `${guide}: ${target}`);
  }
});
