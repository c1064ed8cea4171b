import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { test } from 'node:test';

const root = dirname(dirname(import.meta.dirname));
const pages = globSync(['*.md', 'docs/**/*.md', 'bench/**/*.md', '.github/**/*.md'], { cwd: root }).map((file) =>
  join(root, file),
);

/** What is shown as code is no link and no heading. */
const prose = (text: string): string =>
  text
    .replace(/^( *)(```|~~~)[\s\S]*?^\1\2\s*$/gm, '')
    .replace(/(`+)(?!`)[\s\S]*?[^`]\1(?!`)/g, (code) => code.replace(/[[\]]/g, ' '));

/** Anchors as GitHub makes them: lower case, without punctuation, and numbered from the second of a name on. */
const anchorsOf = (file: string): ReadonlySet<string> => {
  const counts = new Map<string, number>();
  const text = readFileSync(file, 'utf8').replace(/^( *)(```|~~~)[\s\S]*?^\1\2\s*$/gm, '');
  return new Set(
    [...text.matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, heading = '']) => {
      const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const anchor = plain.replace(/[^\p{L}\p{N}\p{M}\p{Pc}\- ]/gu, '').replaceAll(' ', '-');
      const before = counts.get(anchor) ?? 0;
      counts.set(anchor, before + 1);
      return before === 0 ? anchor : `${anchor}-${before}`;
    }),
  );
};

interface Link {
  readonly page: string;
  readonly target: string;
}

const linksOf = (page: string): Link[] => {
  const text = prose(readFileSync(page, 'utf8'));
  const inline = [...text.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)].map(([, target = '']) => target);
  const named = [...text.matchAll(/^\[[^\]]+\]:\s*(\S+)/gm)].map(([, target = '']) => target);
  return [...inline, ...named]
    .filter((target) => !/^[a-z][a-z0-9+.-]*:/i.test(target))
    .map((target) => ({ page, target }));
};

const problemOf = ({ page, target }: Link): string | null => {
  const [path = '', anchor] = target.split('#', 2);
  const file = path === '' ? page : resolve(dirname(page), decodeURIComponent(path));
  const at = `${relative(root, page)}: ${target}`;
  if (!existsSync(file)) return `${at} leads nowhere`;
  if (anchor === undefined || statSync(file).isDirectory() || !file.endsWith('.md')) return null;
  return anchorsOf(file).has(anchor) ? null : `${at} names no heading of ${relative(root, file)}`;
};

test('every link between documents leads to a file, and its anchor to a heading', () => {
  const [page = ''] = pages;
  for (const target of ['docs/nowhere.md', 'docs/quotas.md#no-such-heading'])
    assert.ok(problemOf({ page, target }) !== null, `${target} would be found`);
  const links = pages.flatMap(linksOf);
  assert.ok(pages.length > 60 && links.length > 150, `${links.length} links of ${pages.length} pages were followed`);
  assert.ok(links.filter(({ target }) => target.includes('#')).length > 5, 'anchors are among them');
  assert.deepEqual(
    links.map(problemOf).filter((problem) => problem !== null),
    [],
  );
});
