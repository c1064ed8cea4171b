import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadModule } from '../../../src/core/files/load-module.ts';
import { storedCall } from '../../../src/engine/context/turn-resume.ts';
import { hostLibrary, loadHostModules } from '../../../src/features/modules/index.ts';
import { forEachDurableService, openApp } from '../../support/app.ts';
import { refusal, runJson } from '../runs/run-calls.ts';
import { local, says, secret } from './guard-world.ts';

const allow = { inspect: async () => ({ decision: 'Allow' as const }) };

const startWith = (t: TestContext, ...guards: readonly unknown[]) =>
  openApp(t, 'in process', { module: { guards: guards as never }, service: { ContentGuard: { Pattern: {} } } });

test('GUARD-2 names are unique in any case, and pattern is the built-in guard', async (t) => {
  const refused: readonly (readonly [RegExp, ...unknown[]])[] = [
    [/guards is taken for AUDIT: .* registers one already/, { name: 'audit', ...allow }, { name: 'AUDIT', ...allow }],
    [/guards has Pattern, which is the built-in guard/, { name: 'Pattern', ...allow }],
    [/guards has "a b", which is not 1 to 64/, { name: 'a b', ...allow }],
    [/guards has "", which is not 1 to 64/, { name: '', ...allow }],
    [/guards must be a list of objects with a name and a function inspect/, { name: 'x' }],
    [/guards is taken for pattern/, hostLibrary.patternGuard(), hostLibrary.patternGuard()],
  ];
  for (const [message, ...guards] of refused) await assert.rejects(startWith(t, ...guards), message);
  await startWith(t, { name: 'A-1_b.c', ...allow }, hostLibrary.patternGuard());
});

forEachDurableService(
  'GUARD-1 GUARD-4 the pattern guard comes with its section, also an empty one, and is the last',
  async (open) => {
    const seen: string[] = [];
    const app = await open({
      simulator: {},
      service: { ContentGuard: { Pattern: {} } },
      module: {
        guards: [
          hostLibrary.patternGuard(),
          {
            name: 'first',
            inspect({ text }) {
              seen.push(text);
              return { decision: 'Allow' };
            },
          },
        ],
      },
      agents: [{ name: 'helper', model: local }],
    });
    app.simulator.enqueue(says(secret));
    assert.equal((await runJson(app.client, 'helper', 'jo@example.com')).output, secret, 'it allows everything');
    assert.deepEqual(seen, ['jo@example.com', secret]);
    const { folder } = app;
    await app.close();
    const strict = await open({
      folder,
      simulator: {},
      service: { ContentGuard: { Pattern: { DeniedTerms: [secret] } } },
      module: { guards: [{ name: 'first', inspect: ({ text }) => ({ decision: 'Mask', text, rules: ['seen'] }) }] },
    });
    const problem = await refusal(runJson(strict.client, 'helper', secret));
    assert.deepEqual([problem.guardName, problem.ruleName], ['pattern', 'denied-term:0']);
  },
);

test('GUARD-4 a typed module registers guards, the built-in one by a call', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'acp-guards-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'policy.mts');
  writeFileSync(
    file,
    `import { defineModule, patternGuard } from 'acp';
     class Length {
       readonly name = 'length';
       readonly most = 10;
       async inspect({ text }: { text: string }) {
         return text.length > this.most ? { decision: 'Block', rule: 'too-long' } : { decision: 'Allow' };
       }
     }
     export default defineModule({ guards: [patternGuard(), new Length()] });`,
  );
  const loaded = await loadHostModules([file], (path) => loadModule(path, hostLibrary));
  assert.deepEqual(loaded.problems, []);
  assert.equal(loaded.usesPatternGuard, true);
  assert.deepEqual(
    loaded.guards.map(({ name }) => name),
    ['length'],
  );
  const verdict = await loaded.guards[0]?.inspect({ text: 'x'.repeat(11) } as never, new AbortController().signal);
  assert.deepEqual(verdict, { decision: 'Block', rule: 'too-long' }, 'inspect may use this');
});

test('GUARD-9 a call whose arguments are masked is not made again by another process', () => {
  const open = {
    call: { type: 'tool-call', toolCallId: 'c1', toolName: 'send', input: '{"to":"jo@example.com"}' },
    idempotencyKey: 'k',
    answer: 'execute',
  } as const;
  assert.deepEqual(storedCall(open), open);
  const stored = storedCall({ ...open, keptInput: '{"to":"[redacted]"}' });
  assert.ok(!JSON.stringify(stored).includes('jo@example.com'));
  assert.ok(typeof stored.answer !== 'string' && stored.answer.type === 'ToolResult');
  assert.match(stored.answer.errorMessage ?? '', /outcome of the call is unknown/);
});
