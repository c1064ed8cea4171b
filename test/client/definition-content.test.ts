import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { definitionYaml } from '../../src/cli/output/definition-yaml.ts';
import { definitionContent, isSameDefinition } from '../../src/client/definition-content.ts';

const written = {
  name: 'support',
  model: {
    provider: 'openai',
    model: 'gpt-5-mini',
    responseFormat: { kind: 'jsonschema', schema: { type: 'object' } },
  },
  parameters: [{ name: 'city', kind: 'text' }],
  toolNames: ['find'],
  metadata: { keep: null, list: [], flag: false },
};

const stored = {
  name: 'support',
  model: {
    provider: 'openai',
    model: 'gpt-5-mini',
    temperature: null,
    topP: null,
    maxOutputTokens: null,
    reasoningEffort: null,
    providerSettings: {},
    responseFormat: { kind: 'JsonSchema', schema: { type: 'object' }, schemaName: 'response', schemaDescription: null },
    fallbacks: [],
    responseCache: null,
    allowConcurrentToolCalls: false,
  },
  displayName: null,
  description: null,
  instructions: null,
  instructionsByCulture: null,
  sharedInstructionsName: null,
  parameters: [{ name: 'city', kind: 'Text', required: false, defaultValue: null, description: null }],
  toolNames: ['find'],
  skillNames: [],
  callableAgentNames: [],
  subAgents: null,
  mcpResourceUris: [],
  harness: null,
  compaction: null,
  memory: null,
  metadata: { keep: null, list: [], flag: false },
  origin: 'database',
  version: 7,
  tenantId: 'default',
  updatedAt: '2026-01-01T00:00:00.000Z',
  updatedBy: null,
  restoredFrom: 3,
};

describe('what a definition says', () => {
  test('is the same as written and as stored', () => {
    assert.ok(isSameDefinition(written, stored));
    assert.ok(isSameDefinition({ ...written, expectedVersion: 7 }, stored));
  });

  test('differs with every change that is not only spelling', () => {
    const changes: Record<string, unknown>[] = [
      { toolNames: [] },
      { description: 'x' },
      { model: { ...written.model, temperature: 0 } },
      { model: { ...written.model, responseFormat: { ...written.model.responseFormat, schemaName: 'other' } } },
      { parameters: [{ name: 'city', kind: 'text', required: true }] },
      { metadata: { keep: null, list: [] } },
      { harness: {} },
      { toolnames: ['find'] },
    ];
    for (const change of changes)
      assert.ok(!isSameDefinition({ ...written, ...change }, stored), JSON.stringify(change));
  });

  test('keeps to the default lifetime of a response cache', () => {
    const cache = (responseCache: object) => ({ model: { ...written.model, responseCache } });
    const kept = { ...stored, ...cache({ enabled: true, lifetimeMs: 600_000 }) };
    assert.ok(isSameDefinition({ ...written, ...cache({ enabled: true }) }, kept));
    assert.ok(!isSameDefinition({ ...written, ...cache({ enabled: true, lifetimeMs: 1000 }) }, kept));
    assert.ok(!isSameDefinition(written, kept));
  });

  test('has no member less where false is not what it has without one', () => {
    const partner = { name: 'partner', cardUrl: 'https://partner.example/card.json' };
    const remote = (more: object) => ({ ...written, remoteAgents: [{ ...partner, ...more }] });
    const whole = { description: null, authorizationConfigurationKey: null, effect: 'External', pinning: 'Warn' };
    const asks = remote({ ...whole, timeoutMs: 300_000, requiresApproval: true });
    const free = remote({ ...whole, timeoutMs: 300_000, requiresApproval: false });
    assert.ok(isSameDefinition(remote({ effect: 'external' }), asks));
    assert.ok(isSameDefinition(remote({ requiresApproval: false }), free));
    assert.ok(!isSameDefinition(remote({}), free));
    assert.ok(!isSameDefinition(remote({ pinning: 'Block' }), asks));
    assert.deepEqual(parse(definitionYaml(free, false)).remoteAgents, [{ ...partner, requiresApproval: false }]);
    assert.deepEqual(parse(definitionYaml(asks, false)).remoteAgents, [partner]);
  });

  test('is compared for bodies of any shape', () => {
    assert.ok(!isSameDefinition({ name: 'support', model: 'gpt' }, stored));
    assert.ok(!isSameDefinition({ name: 'support', toolNames: { a: 1 } }, stored));
  });

  test('comes back from its YAML, long texts and odd words included', () => {
    const odd = { ...stored, instructions: 'yes\nno: "x"\n\n  - 1\n', description: 'a'.repeat(300), displayName: 'on' };
    assert.deepEqual(parse(definitionYaml(odd, false)), definitionContent(odd));
  });
});
