import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');
const codeOf = (file: string): string =>
  readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\/?\*|\/\/).*$|\/\/ .*$/gm, '');
const filesWith = (pattern: RegExp): string[] =>
  globSync('src/{engine,features,scheduler}/**/*.ts', { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => pattern.test(codeOf(file)))
    .sort();

const readsTime = /\bDate\.now\b|\bnew Date\(\)|\bTemporal\.Now\b/;
const waits = /\bset(Timeout|Interval)\b/;

test('the time of the service is read from its clock', () => {
  assert.deepEqual(filesWith(readsTime), []);
});

// Waits of the machine; docs/design/clocks-and-leases.md says why they are not of the clock.
const machineWaits: readonly string[] = [
  'src/engine/record/paced-deltas.ts',
  'src/engine/tools/deadline.ts',
  'src/features/jobs/module-jobs.ts',
  'src/features/mcp-servers/oauth/stored-grants.ts',
  'src/features/quotas/quota-admission.ts',
  'src/features/quotas/quota-allowances.ts',
  'src/features/retention/sweep-space.ts',
  'src/features/retention/sweep-writer.ts',
  'src/features/retention/sweep.ts',
  'src/features/schedules/schedule-dispatch.ts',
  'src/features/skills/script-process.ts',
];

test('what the service does later, its clock starts', () => {
  assert.deepEqual(
    filesWith(waits).filter((file) => !machineWaits.includes(file)),
    [],
  );
});

test('code that reads or waits by itself would be seen', () => {
  assert.ok(['const at = Date.now();', 'now: Date.now,', 'new Date()'].every((line) => readsTime.test(line)));
  assert.ok(!readsTime.test('new Date(row.created_at)'));
  assert.ok(
    ["import { setTimeout as pause } from 'node:timers/promises';", 'setInterval(look, 5)'].every((line) =>
      waits.test(line),
    ),
  );
});
