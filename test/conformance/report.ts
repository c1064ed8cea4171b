import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { areas, elsewhere } from './rules.ts';

const tests = resolve(import.meta.dirname, '..');
const ruleId = new RegExp(`\\b(?:${Object.keys(areas).join('|')})-\\d+\\b`, 'g');

/** Ids in the names of tests: in quotes, at the start of a call. */
const idsIn = (file: string): string[] =>
  [
    ...readFileSync(file, 'utf8').matchAll(
      /\b(?:rule|test|it|forEachTransport|overHttp|forEachDialect)\(\s*[`'"]([^`'"]*)/g,
    ),
  ].flatMap(([, name = '']) => name.match(ruleId) ?? []);

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.(?:test|conformance)\.tsx?$/.test(path))
    .map((path) => join(folder, path));

const overHttp = new Set<string>();
const otherwise = new Set<string>();
for (const file of filesBelow(tests))
  for (const id of idsIn(file)) (file.endsWith('.conformance.ts') ? overHttp : otherwise).add(id);

const all = Object.entries(areas).flatMap(([area, { rules }]) => rules.map((number) => `${area}-${number}`));
const missing = all.filter((id) => !overHttp.has(id) && !otherwise.has(id) && !Object.hasOwn(elsewhere, id));
const stale = Object.keys(elsewhere).filter((id) => overHttp.has(id) || otherwise.has(id) || !all.includes(id));

const count = (ids: readonly string[]) => String(ids.length).padStart(4);
const lines = Object.entries(areas).map(([area, { rules, title }]) => {
  const ids = rules.map((number) => `${area}-${number}`);
  const direct = ids.filter((id) => overHttp.has(id));
  const other = ids.filter((id) => !overHttp.has(id) && otherwise.has(id));
  const none = ids.filter((id) => !overHttp.has(id) && !otherwise.has(id));
  return `${title.padEnd(22)}${count(ids)} rules  ${count(direct)} over HTTP  ${count(other)} by other tests  ${count(none)} without`;
});
console.log(`\n${lines.join('\n')}`);
for (const [id, reason] of Object.entries(elsewhere))
  if (!stale.includes(id)) console.log(`${id} has no test: ${reason}`);
if (missing.length > 0) console.log(`\nRules without a test and without a reason: ${missing.join(', ')}`);
if (stale.length > 0) console.log(`\nListed as untested though they have a test: ${stale.join(', ')}`);
process.exitCode = missing.length + stale.length > 0 ? 1 : 0;
