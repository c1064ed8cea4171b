import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { renderConfigurationReference, renderEffective, renderExampleYaml } from '../../../src/core/config/index.ts';
import { environment } from '../../../src/core/environment.ts';
import { load } from './config-folder.ts';

const root = join(import.meta.dirname, '../../..');

const generated: Record<string, () => string> = {
  'service.example.yaml': renderExampleYaml,
  'docs/reference/configuration.md': renderConfigurationReference,
};

for (const [file, render] of Object.entries(generated))
  test(`CONF-18 ${file} is what the schema says (ACP_UPDATE_GOLDEN=1 rewrites it)`, () => {
    const path = join(root, file);
    if (environment()['ACP_UPDATE_GOLDEN'] === '1') {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, render());
    }
    assert.equal(readFileSync(path, 'utf8'), render());
  });

test('CONF-18 the example file as it stands is the default configuration', () => {
  const example = load({ yaml: renderExampleYaml() });
  assert.deepEqual(example.values, load().values);
  assert.deepEqual(example.warnings, []);
});

test('CONF-18 the example file sets every key that has a default of its own', () => {
  const example = renderExampleYaml();
  const { sources } = load({ yaml: example });
  const missing = [...sources].filter(([, source]) => source.kind === 'default').map(([key]) => key);
  // A vendor's section registers its provider, so the example has it in comments.
  const vendors = missing.flatMap((key) => /^Service:Providers:(\w+)$/.exec(key)?.[1] ?? []);
  assert.ok(vendors.includes('OpenAI') && vendors.includes('Anthropic'), vendors.join(', '));
  for (const vendor of vendors) assert.match(example, new RegExp(`^ {4}# ${vendor}:$`, 'm'));
  assert.deepEqual(
    missing.filter((key) => !key.startsWith('Service:Providers:')),
    ['Host:A2A:Provider', 'Service:ContentGuard:Pattern'],
  );
});

test('CONF-18 the sections in comments can be used once the marks are gone', () => {
  const lines = renderExampleYaml().split('\n');
  const start = lines.findIndex((line) => /^ {4}# Anthropic:$/.test(line));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('    #'));
  const section = lines.slice(start, end).map((line) => line.replace(/^ {4}# /, '    '));
  const { Anthropic } = load({ yaml: `Service:\n  Providers:\n${section.join('\n')}\n` }).values.Service.Providers;
  assert.deepEqual([Anthropic?.DefaultMaxOutputTokens, Anthropic?.Models], [4096, []]);
});

test('CONF-17 example, reference and effective tree know the same keys', () => {
  const reference = renderConfigurationReference();
  const shown = renderEffective(load(), { json: false });
  for (const key of [
    'DefaultTenantId',
    'MaxTotalCost',
    'SchedulableHandlerKeys',
    'RequireRolePolicies',
    'TranscriptMaxEntries',
    'DocumentEmbeddings',
  ])
    assert.ok(reference.includes(key) && shown.includes(key) && renderExampleYaml().includes(key), key);
});
