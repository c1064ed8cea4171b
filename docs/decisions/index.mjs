/**
 * Writes the list of decision records, `docs/decisions/README.md`, and that of design pages, `docs/design/README.md`:
 * `node docs/decisions/index.mjs`. `test/docs/decisions.test.ts` fails when one of them is not current.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const decisions = import.meta.dirname;
const design = join(decisions, '../design');

const titlePattern = /^# (\d+)\. (\S.*)$/;
const headerPattern = /^\d{4}-\d{2}-\d{2} · (?:accepted|superseded by \d+) · design: (.+)$/;
const pagePattern = /\[([^\]]+)\]\(\.\.\/design\/([a-z0-9-]+\.md)(?:#[^)]*)?\)/g;

const filesIn = (folder, pattern) =>
  readdirSync(folder)
    .filter((file) => pattern.test(file))
    .sort();

/** A record's number, title and design pages. Throws where title or header are not like those of the others. */
export const readRecord = (file, text) => {
  const [first = '', blank, header = ''] = text.split('\n');
  const [, number = '', title = ''] = titlePattern.exec(first) ?? [];
  if (Number(number) !== Number.parseInt(file, 10))
    throw new Error(`${file}: the first line is "# N. Subject: choice", with the number of the file.`);
  const [, links = ''] = headerPattern.exec(header) ?? [];
  const pages = [...links.matchAll(pagePattern)].map(([, , page]) => page);
  if (blank !== '' || pages.length === 0)
    throw new Error(`${file}: the third line is "YYYY-MM-DD · accepted · design: [page](../design/page.md)".`);
  return { file, number: Number(number), title, links, pages };
};

export const readRecords = () =>
  filesIn(decisions, /^\d{4}-.*\.md$/).map((file) => readRecord(file, readFileSync(join(decisions, file), 'utf8')));

/** Without links, which lead from another folder. */
const firstSentence = (paragraph) => {
  const text = paragraph.replaceAll(/\s+/g, ' ').replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1');
  return /^.*?\.(?= |$)/.exec(text)?.[0] ?? '';
};

/** A design page's title and first sentence, and the numbers of the records that it replaces. */
export const readPages = () =>
  filesIn(design, /(?<!^README)\.md$/).map((file) => {
    const text = readFileSync(join(design, file), 'utf8');
    const [heading = '', paragraph = ''] = text.split('\n\n');
    const [, listed = ''] = /^Records: (.+)\.\n$/ms.exec(text) ?? [];
    return {
      file,
      title: heading.replace(/^# /, ''),
      summary: firstSentence(paragraph),
      records: [...listed.matchAll(/\d+/g)].map(([number]) => Number(number)),
    };
  });

const decisionsIndex = (records) => `# Decision records

The archive of choices between two designs, by number. What is in force today is in the [design pages](../design/README.md); a record
keeps the words and figures of its day. Written by \`node docs/decisions/index.mjs\`.

| | record | design |
|---|---|---|
${records.map(({ file, number, title, links }) => `| ${number} | [${title.replaceAll('|', '\\|')}](${file}) | ${links} |`).join('\n')}
`;

const designIndex = (pages) => `# Design

One page for each subject: the rules in force, their reasons and figures, what was tried and rejected. How the code is cut is in
[architecture](../architecture.md); the [decision records](../decisions/README.md) are the archive. Written by
\`node docs/decisions/index.mjs\`.

${pages.map(({ file, title, summary }) => `- [${title}](${file}): ${summary}`).join('\n')}
`;

/** The text of each index, by its path. */
export const indexes = () => ({
  [join(decisions, 'README.md')]: decisionsIndex(readRecords()),
  [join(design, 'README.md')]: designIndex(readPages()),
});

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const [path, text] of Object.entries(indexes())) writeFileSync(path, text);
