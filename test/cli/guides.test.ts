import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { commandEntries } from '../../src/cli/command-host.ts';
import { buildProgram } from '../../src/cli/program.ts';

const root = join(import.meta.dirname, '../..');
const guides = ['README.md', 'docs/getting-started.md'];

/** Command lines of `acp` in the shell examples of a page, as words. */
const commandLines = (text: string): string[][] =>
  [...text.matchAll(/```sh\n([\s\S]*?)```/g)]
    .flatMap(([, block = '']) => block.split(/\n|&&/))
    .map((line) => line.replace(/#.*$/, '').trim())
    .flatMap((line) => /(?:^|\s)(?:bin\/)?acp (.+)$/.exec(line)?.[1] ?? [])
    .map((line) => line.split(/\s+/));

test('every command and option that the guides show exists', () => {
  const program = buildProgram();
  const entries = commandEntries(program);
  const globals = program.options.flatMap(({ long }) => long ?? []);
  let seen = 0;
  for (const guide of guides)
    for (const words of commandLines(readFileSync(join(root, guide), 'utf8'))) {
      const found = entries.find(({ name }) => name === words.slice(0, name.split(' ').length).join(' '));
      assert.ok(found !== undefined, `${guide}: acp ${words.join(' ')}`);
      const known = new Set([...globals, ...found.command.options.flatMap(({ long, short }) => [long, short])]);
      for (const word of words.filter((part) => /^--?[a-z]/.test(part)))
        assert.ok(known.has(word), `${guide}: acp ${words.join(' ')}: ${word}`);
      seen += 1;
    }
  assert.ok(seen > 15, `${seen} command lines were seen`);
});

test('every page that the guides link to exists', () => {
  for (const guide of guides) {
    const text = readFileSync(join(root, guide), 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\((?!https?:)([^)#]+)/g))
      assert.ok(existsSync(join(root, dirname(guide), target)), `${guide}: ${target}`);
  }
});
