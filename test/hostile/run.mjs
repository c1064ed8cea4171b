/**
 * `npm run test:hostile`: every hostile shape at every place of every body, and in every answer of another system, as large as each is taken;
 * minutes long. It ends with those that cost the most. `ACP_HOSTILE_ONLY='^traces'` picks operations and answers.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

const shown = 10;
const folder = mkdtempSync(join(tmpdir(), 'acp-hostile-'));
const file = join(folder, 'report.jsonl');

process.env.ACP_HOSTILE = 'complete';
process.env.ACP_HOSTILE_REPORT = file;
// One after the other: what shares the machine also shares its caches.
process.argv.push('test/hostile', '--test-timeout=3600000', '--test-concurrency=1');
await import('../run.mjs');

const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
rmSync(folder, { recursive: true });
const measured = lines.map((line) => JSON.parse(line));
for (const [title, member, isFelt] of [
  ['The longest turns of the event loop, as multiples of a plain body', 'times', 'isLong'],
  ['The most memory, as multiples of the body', 'timesBytes', 'isLarge'],
]) {
  const felt = measured.filter((one) => one[isFelt]);
  process.stdout.write(`\n${title} (${felt.length} of ${measured.length} are long or large enough to count):\n`);
  for (const { what, size, text } of felt.toSorted((left, right) => right[member] - left[member]).slice(0, shown))
    process.stdout.write(`  ${what}, ${size} bytes: ${text}\n`);
}
