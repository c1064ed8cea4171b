import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const docs = join(import.meta.dirname, '../../docs');
const page = readFileSync(join(docs, 'threat-model.md'), 'utf8');

/** Links as `[text](target)` of one text; a name in quotes may hold brackets of its own. */
const linksOf = (text: string) =>
  [...text.matchAll(/\[("[^"]+"|[^\]]+)\]\((?!https?:)([^)#]+)\)/g)].map(([, label = '', target = '']) => ({
    label,
    target,
  }));

test('what the threat model links to exists, and a test file holds the test that is quoted', () => {
  for (const { label, target } of linksOf(page)) {
    const file = join(docs, target);
    assert.ok(existsSync(file), target);
    if (!target.startsWith('../test/')) continue;
    const name = /^"(.+)"$/.exec(label)?.[1];
    assert.ok(name !== undefined, `${target}: a link to a test quotes its name`);
    const source = readFileSync(file, 'utf8');
    assert.ok(source.includes(name) || source.includes(name.replaceAll("'", "\\'")), `${target}: ${name}`);
  }
});

test('every promise of the threat model names a test', () => {
  const promises = /\n## Promises\n([\s\S]*?)\n## /.exec(page)?.[1] ?? '';
  const rows = promises.split('\n').filter((line) => /^\| (?!Promise \|)/.test(line));
  assert.ok(rows.length > 40, `${rows.length} promises were seen`);
  for (const row of rows) {
    const tests = linksOf(row).filter(({ target }) => target.startsWith('../test/'));
    assert.ok(tests.length > 0, row);
  }
});
