import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { test } from 'node:test';

const root = resolve(import.meta.dirname, '../..');
const files = (folders: string): string[] =>
  globSync(`test/${folders}/**/*.{ts,tsx}`, { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .sort();
const linesOf = (file: string): string[] => readFileSync(join(root, file), 'utf8').split('\n');

/** Loops that end when something holds, each as its text: Biome indents what belongs to one. */
const conditionLoops = (lines: readonly string[]): string[] =>
  lines.flatMap((line, index) => {
    const indent = /^(\s*)(?:while \(|for \(;;\)|do \{)/.exec(line)?.[1];
    if (indent === undefined) return [];
    const rest = lines.slice(index + 1);
    const end = rest.findIndex((next) => next !== '' && !next.startsWith(`${indent} `));
    return [[line, ...rest.slice(0, end < 0 ? rest.length : end)].join('\n')];
  });

/** What asks again and again whether something holds. Whoever awaits events does not ask. */
const polls = (lines: readonly string[]): string[] =>
  conditionLoops(lines).filter((loop) => /\bawait\b/.test(loop) && !/\bonce\(/.test(loop));

test('whoever waits in a test has a time limit and says what for', () => {
  // Tests of the executable put it under load, and let programs of their own come up.
  const asking = files(
    '{architecture,client,conformance,contract,core,db,docs,engine,features,http,providers,scheduler,support}',
  )
    .filter((file) => file !== 'test/support/eventually.ts')
    .flatMap((file) => polls(linesOf(file)).map((loop) => `${file}: ${loop}`));
  assert.deepEqual(asking, [], 'test/support/eventually.ts does it');
});

// Waits of the machine, which are not of the clock that tests move; docs/design/clocks-and-leases.md.
const ofTheMachine: readonly string[] = [
  'test/db/commit-lanes.test.ts',
  'test/db/postgres/silent-server.test.ts',
  'test/db/sqlite/idle-thread.test.ts',
  'test/engine/control/approval-gate.test.ts',
  'test/engine/record/run-log.test.ts',
  'test/engine/tools/prepared-call.test.ts',
  'test/features/modules/run-authorization.test.ts',
  'test/features/platform/health.test.ts',
  'test/http/rate-limit.test.ts',
  'test/providers/mcp/waits.test.ts',
];

test('time passes on the clock of tests, and timers of Node are turned only where the machine waits', () => {
  const turning = files('**').filter((file) =>
    linesOf(file).some((line) => /\bmock\.timers\.enable\(|\bDate\.now = /.test(line)),
  );
  assert.deepEqual(
    turning.filter((file) => !ofTheMachine.includes(file) && file !== 'test/architecture/waits.test.ts'),
    [],
  );
});

test('a loop that asks again and again would be seen', () => {
  const loops = [
    ['while (row === null) row = await jobs.get(id);'],
    ['  for (;;) {', '    if (await holds()) return;', '', '    await pause(20);', '  }'],
    ['do {', '  row = await look();', '} while (row === null);'],
  ];
  for (const lines of loops) assert.equal(polls(lines).length, 1, lines.join('\n'));
  const others = [
    ['while (stack.length > 0) stack.pop();', 'await end;'],
    ["while (!text.includes('x')) {", "  await once(socket, 'data');", '}'],
    ['for (let turn = 0; turn < 10; turn += 1) await nextTurn();'],
  ];
  for (const lines of others) assert.deepEqual(polls(lines), [], lines.join('\n'));
});
