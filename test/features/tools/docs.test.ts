import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { loadModule } from '../../../src/core/files/load-module.ts';
import { createToolRegistry } from '../../../src/engine/tools/registry.ts';
import { hostLibrary, loadHostModules } from '../../../src/features/modules/index.ts';
import { loadDeclaredTools } from '../../../src/features/tools/declared-tools.ts';

import { createOutboundHttp } from '../../../src/providers/http/outbound.ts';

/** The fenced blocks of a page, by language. */
const blocks = async (page: string, language: string): Promise<string[]> => {
  const text = await readFile(new URL(`../../../docs/${page}`, import.meta.url), 'utf8');
  return [...text.matchAll(new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 'gs'))].map(([, code]) => code ?? '');
};

const folder = async (t: TestContext): Promise<string> => {
  const path = await mkdtemp(join(tmpdir(), 'acp-docs-'));
  t.after(() => rm(path, { recursive: true }));
  return path;
};

test('the tools of docs/tools.md start', async (t) => {
  const path = await folder(t);
  const examples = (await blocks('tools.md', 'yaml')).filter((text) => text.includes('inputSchema'));
  await Promise.all(examples.map((text, index) => writeFile(join(path, `${index}.yaml`), text)));
  const http = createOutboundHttp({ allowPrivate: false });
  t.after(() => http.close());
  const loaded = await loadDeclaredTools([path], { http, allowPrivate: false, resolveReference: () => 'value' });
  const names = createToolRegistry(loaded.registrations, loaded.problems)
    .list()
    .map(({ descriptor }) => descriptor.name);
  assert.deepEqual(names, ['create_ticket', 'get_forecast', 'set_priority']);
});

test('the modules of docs/modules.md start, and their tools answer', async (t) => {
  const path = await folder(t);
  const files = [
    ...(await blocks('modules.md', 'js')).map((text, index) => [`js-${index}.mjs`, text] as const),
    ...(await blocks('modules.md', 'ts')).map((text, index) => [`ts-${index}.mts`, text] as const),
  ];
  await Promise.all(files.map(([name, text]) => writeFile(join(path, name), text)));
  const paths = files.map(([name]) => join(path, name));
  const loaded = await loadHostModules(paths, (file) => loadModule(file, hostLibrary));
  assert.deepEqual(loaded.names.toSorted(), [
    'alarms',
    'clock',
    'cost-centres',
    'grades',
    'office-hours',
    'orders',
    'own-runs',
    'policy',
    'quality',
    'refunds',
    'roles',
    'shop',
    'support-agents',
  ]);
  assert.deepEqual(loaded.judges.map(({ value }) => value.name).toSorted(), ['brevity', 'grade']);
  const registry = createToolRegistry(loaded.registrations, loaded.problems);
  assert.deepEqual(
    registry.list().map(({ descriptor }) => descriptor.name),
    ['cancel_order', 'database_time', 'order_state', 'refund'],
  );
  const context = { emit: () => undefined } as never;
  const state = registry.get('order_state')?.definition.execute;
  assert.deepEqual(await state?.({ number: 'A-1' }, context), { state: 'shipped' });
  await assert.rejects(async () => state?.({ number: 'A-2' }, context), /There is no order A-2/);
  assert.ok(await registry.get('database_time')?.definition.execute?.({}, context));
});
