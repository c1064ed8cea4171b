import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

interface DecisionRecord {
  readonly number: number;
  readonly pages: readonly string[];
}

interface Index {
  readonly indexes: () => Readonly<Record<string, string>>;
  readonly readPages: () => readonly { readonly file: string; readonly summary: string; readonly records: number[] }[];
  readonly readRecord: (file: string, text: string) => DecisionRecord;
  readonly readRecords: () => readonly DecisionRecord[];
}

const root = resolve(import.meta.dirname, '../..');
const script = join(root, 'docs/decisions/index.mjs');
const { indexes, readPages, readRecord, readRecords } = (await import(pathToFileURL(script).href)) as Index;

test('the lists of decision records and of design pages are current', () => {
  for (const [path, text] of Object.entries(indexes()))
    assert.equal(readFileSync(path, 'utf8'), text, `${relative(root, path)}: run node docs/decisions/index.mjs`);
});

test('a design page names the records that name it, and no others', () => {
  const records = readRecords();
  const numbers = records.map(({ number }) => number);
  assert.deepEqual([...new Set(numbers)], numbers, 'a number is that of one record');
  for (const { file, summary, records: listed } of readPages()) {
    assert.match(summary, /^\S.*\.$/, `${file} begins with a sentence that says what it covers`);
    const naming = records.filter(({ pages }) => pages.includes(file)).map(({ number }) => number);
    assert.deepEqual(
      [...listed].sort((a, b) => a - b),
      naming,
      file,
    );
  }
});

test('a file that a design page names exists', () => {
  const names = new Set(
    globSync('{src,test,bench,migrations}/**/*.{ts,tsx,mjs}', { cwd: root }).map((path) => basename(path)),
  );
  const exists = (path: string): boolean =>
    existsSync(join(root, path)) || (!/^(src|test|bench|migrations)\//.test(path) && names.has(basename(path)));
  assert.ok(!exists('src/nowhere.ts') && !exists('nowhere.ts'), 'a file that is not there would be seen');
  const named = readPages().flatMap(({ file }) => {
    const text = readFileSync(join(root, 'docs/design', file), 'utf8');
    return [...text.matchAll(/`((?:[\w-]+\/)*[\w.-]+\.tsx?|(?:src|test|bench|migrations)\/[\w./-]+)`/g)].map(
      ([, path = '']) => ({ file, path }),
    );
  });
  assert.ok(named.length > 200, `${named.length} paths were looked at`);
  const missing = named.filter(({ path }) => !exists(path));
  assert.deepEqual(missing, []);
});

test('a record with another title or header is refused', () => {
  const header = '2026-11-23 · accepted · design: [jobs](../design/jobs.md)';
  assert.deepEqual(readRecord('0007-x.md', `# 7. Jobs: x\n\n${header}\n`).pages, ['jobs.md']);
  for (const text of [
    `# 8. Jobs: x\n\n${header}\n`,
    `# 7 · Jobs: x\n\n${header}\n`,
    `# 7. Jobs: x\n${header}\n`,
    '# 7. Jobs: x\n\n2026-11-23 · accepted\n',
  ])
    assert.throws(() => readRecord('0007-x.md', text), /^Error: 0007-x\.md: the (first|third) line is /);
});
