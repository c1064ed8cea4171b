import assert from 'node:assert/strict';
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import extractTSConfig from 'dependency-cruiser/config-utl/extract-ts-config';

const root = resolve(import.meta.dirname, '../..');

/** What `acp --help` must not pay for. */
const heavy = /node_modules\/(fastify|kysely|better-sqlite3|sqlite-vec|undici|ink|react|@ai-sdk\/[^/]+)\//;

/** All modules that are evaluated when `entry` is: dynamic imports and types load nothing. */
const loadedWith = (entry: string, { modules }: ICruiseResult): ReadonlySet<string> => {
  const bySource = new Map(modules.map((module) => [module.source, module]));
  const loaded = new Set([entry]);
  for (const source of loaded) {
    for (const { resolved, dynamic, dependencyTypes } of bySource.get(source)?.dependencies ?? [])
      if (!dynamic && !dependencyTypes.includes('type-only')) loaded.add(resolved);
  }
  return loaded;
};

const cruiseFolder = async (folder: string): Promise<ICruiseResult> => {
  const options = await extractDepcruiseOptions(join(root, '.dependency-cruiser.mjs'));
  const result = await cruise(['src', 'migrations'], { ...options, baseDir: folder, validate: true }, undefined, {
    tsConfig: extractTSConfig(join(root, 'tsconfig.json')),
  });
  assert.ok(typeof result.output === 'object');
  return result.output;
};

/** One file that breaks each rule: rule → file → its imports. */
const violations: Readonly<Record<string, readonly [file: string, statement: string]>> = {
  'no-cycles': ['src/core/cycle-a.ts', "import type { B } from './cycle-b.ts'; export interface A { b: B }"],
  'no-feature-folder-cycles': ['src/features/left/a.rules.ts', "import '../right/index.ts';"],
  'no-feature-internals': ['src/features/outer/a.rules.ts', "import '../inner/inner.store.ts';"],
  'no-feature-internals-from-outside': ['src/module/mount.ts', "import '../features/inner/inner.store.ts';"],
  'no-room-internals': ['src/engine/lifecycle/inward.ts', "import '../turn/loop.ts';"],
  'no-room-internals-from-outside': ['src/features/inner/inward.rules.ts', "import '../../engine/turn/loop.ts';"],
  'no-feature-room-internals': ['src/features/inner/inward.service.ts', "import './launch/launch.ts';"],
  'contract-is-a-leaf': ['src/contract/leaf.ts', "import 'node:fs';"],
  'operations-table-is-data': ['src/operations.ts', "import './features/inner/index.ts';"],
  'features-know-no-transport': [
    'src/features/inner/reply.rules.ts',
    "import type { FastifyReply } from 'fastify'; export type R = FastifyReply;",
  ],
  'sql-only-in-stores': ['src/features/inner/query.rules.ts', "import 'kysely';"],
  'batched-path': ['src/features/inner/hot.service.ts', "import '../../db/batched-writes.ts';"],
  'handles-only-in-stores': ['src/features/inner/direct.service.ts', "import '../../db/define-store.ts';"],
  'drivers-only-in-open': ['src/db/sqlite/query.ts', "import 'better-sqlite3';"],
  'client-is-light': ['src/client/heavy.ts', "import '../contract/bridge.ts';"],
  'screens-know-the-client': ['src/tui/settings.ts', "import '../core/clock.ts';"],
  'server-by-dynamic-import': ['src/cli/serve.ts', "import '../app.ts';"],
  'product-imports-no-tests': ['src/engine/test-only.ts', "import '../../test/support/tool.ts';"],
  'only-declared-packages': ['src/engine/undeclared.ts', "import 'left-pad-that-is-not-there';"],
  'layer-core': ['src/core/upward.ts', "import '../db/storage.ts';"],
  'layer-db': ['src/db/upward.ts', "import '../engine/turn.ts';"],
  'layer-providers': ['src/providers/sideways.ts', "import '../db/storage.ts';"],
  'layer-scheduler': ['src/scheduler/sideways.ts', "import '../providers/model.ts';"],
  'layer-engine': ['src/engine/upward.ts', "import '../features/inner/index.ts';"],
  'layer-features': ['src/features/inner/upward.rules.ts', "import '../../app.ts';"],
  'layer-app': ['src/app.ts', "import './http/server.ts'; import './features/inner/inner.store.ts';"],
  'layer-http': ['src/http/upward.ts', "import '../cli/program.ts';"],
  'layer-module': ['src/module/upward.ts', "import '../cli/program.ts';"],
  'layer-text': ['src/text/upward.ts', "import '../cli/program.ts';"],
  'layer-client': ['src/client/upward.ts', "import '../cli/program.ts';"],
  'layer-cli': ['src/cli/upward.ts', "import '../main.ts';"],
  'layer-tui': ['src/tui/upward.ts', "import '../cli/program.ts';"],
  'room-tools': ['src/engine/tools/upward.ts', "import '../usage.ts';"],
  'room-nouns': ['src/engine/run-failure.ts', "import './context/history.ts';"],
  'room-context': ['src/engine/context/upward.ts', "import '../record/journal.ts';"],
  'room-record': ['src/engine/record/upward.ts', "import '../control/guard.ts';"],
  'room-control': ['src/engine/control/upward.ts', "import type { Run } from '../active-run.ts'; export type R = Run;"],
  'room-run': ['src/engine/active-run.ts', "import './turn/loop.ts'; export interface Run { id: string }"],
  'room-turn': ['src/engine/turn/upward.ts', "import '../lifecycle/engine.ts';"],
  'context-words': ['src/engine/context/words.ts', "import './compaction/summary.ts';"],
  'context-compaction': ['src/engine/context/compaction/upward.ts', "import '../index.ts';"],
  'control-guards': ['src/engine/control/guards/upward.ts', "import '../guard.ts';"],
  'turn-ports': ['src/engine/turn/turn-ports.ts', "import './model/call.ts';"],
  'turn-model': ['src/engine/turn/model/upward.ts', "import '../loop.ts';"],
  'turn-calls': ['src/engine/turn/calls/upward.ts', "import '../loop/judge.ts';"],
  'turn-loop': ['src/engine/turn/loop/upward.ts', "import '../loop.ts';"],
};

/** What the violating files point at. */
const surroundings: Readonly<Record<string, string>> = {
  'src/core/cycle-b.ts': "import type { A } from './cycle-a.ts'; export interface B { a: A }",
  'src/contract/bridge.ts': "import '../core/clock.ts';",
  'src/core/clock.ts': '',
  'src/db/batched-writes.ts': '',
  'src/db/define-store.ts': '',
  'src/db/storage.ts': '',
  'src/engine/turn.ts': '',
  'src/engine/usage.ts': '',
  'src/engine/context/history.ts': '',
  'src/engine/record/journal.ts': '',
  'src/engine/control/guard.ts': '',
  'src/engine/turn/loop.ts': '',
  'src/engine/turn/loop/judge.ts': '',
  'src/engine/turn/model/call.ts': '',
  'src/engine/context/compaction/summary.ts': '',
  'src/engine/context/index.ts': '',
  'src/engine/lifecycle/engine.ts': '',
  'src/providers/model.ts': '',
  'src/http/server.ts': '',
  'src/cli/program.ts': '',
  'src/main.ts': '',
  'src/features/inner/index.ts': '',
  'src/features/inner/inner.store.ts': '',
  'src/features/inner/launch/launch.ts': '',
  'src/features/left/index.ts': '',
  'src/features/right/index.ts': "import '../left/index.ts';",
  'migrations/index.ts': '',
  'test/support/tool.ts': '',
};

describe('dependency rules', () => {
  let folder: string;

  before(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'acp-rules-')));
    copyFileSync(join(root, 'package.json'), join(folder, 'package.json'));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
    for (const [path, text] of [...Object.values(violations), ...Object.entries(surroundings)]) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), `${text}\nexport const present = true;\n`);
    }
  });

  after(() => rmSync(folder, { recursive: true, force: true }));

  test('every file on disk is cruised, and no rule is broken', async () => {
    const result = await cruiseFolder(root);
    const cruised = result.modules.map(({ source }) => source).filter((source) => /^(src|migrations)\//.test(source));
    const onDisk = globSync('{src,migrations}/**/*.{ts,tsx}', { cwd: root });
    assert.ok(onDisk.length > 0);
    assert.deepEqual(cruised.filter((source) => !source.endsWith('.json')).sort(), onDisk.sort());
    assert.deepEqual(
      result.summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
      [],
    );
  });

  test('the start of the program loads no server, model or screen', async () => {
    const cruised = await cruiseFolder(root);
    // The program is imported once the process knows that it stays the one it is.
    const loaded = new Set(['src/main.ts', 'src/cli/program.ts'].flatMap((entry) => [...loadedWith(entry, cruised)]));
    assert.ok(loaded.has('src/cli/groups.ts'), 'what the program loads is found');
    assert.deepEqual(
      [...loaded].filter((source) => heavy.test(source)),
      [],
    );
  });

  test('every rule reports the file that breaks it', async () => {
    const { summary } = await cruiseFolder(folder);
    const reported = new Map(Object.keys(violations).map((rule) => [rule, [] as string[]]));
    for (const { rule, from } of summary.violations) reported.get(rule.name)?.push(from);
    const silent = Object.entries(violations)
      .filter(([rule, [file]]) => !reported.get(rule)?.some((from) => file === from || file.startsWith(`${from}/`)))
      .map(([rule]) => rule);
    assert.deepEqual(silent, []);
  });

  test('every rule has a file that breaks it', async () => {
    const options = await extractDepcruiseOptions(join(root, '.dependency-cruiser.mjs'));
    const names = options.ruleSet?.forbidden?.map(({ name }) => name).sort();
    assert.deepEqual(names, Object.keys(violations).sort());
  });
});
