import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configSchema } from '../../../src/core/config/schema.ts';
import type { ConfigNode } from '../../../src/core/config/schema-nodes.ts';
import { load, problemAt, refuse } from './config-folder.ts';

test('CONF-14 a key of a feature that is not there is accepted at its default', () => {
  const yaml = `
Host: { Oidc: { Issuer: null, RoleClaim: roles }, AllowedOrigins: [], A2A: { Provider: !!null "" } }
Service:
  Voice: { RequireApproval: false, MaxConcurrentRequests: 2, OutputFormat: MP3 }
  Persistence: { Provider: sqlite }
`;
  const error = refuse({ yaml });
  assert.deepEqual(
    error.problems.map(({ key }) => key),
    ['Host:A2A:Provider', 'Service:Voice:OutputFormat'],
  );
  const accepted = yaml.replace(', A2A: { Provider: !!null "" }', '').replace(', OutputFormat: MP3', '');
  assert.equal(load({ yaml: accepted }).values.Service.Voice.MaxConcurrentRequests, 2);
});

test('CONF-14 any other value says which feature is missing and what would be accepted', () => {
  const args = ['Service:Voice:MaxCharactersPerRequest=10', 'Service:Pricing:Voice:elevenlabs:m:PerMinute=1'];
  const error = refuse({ args });
  const messages = error.problems.map(({ key, code }) => [key, code]);
  assert.equal(
    messages.every(([, code]) => code === 'feature-not-available'),
    true,
    error.report(),
  );
  assert.match(problemAt(error, 'Service:Voice:MaxCharactersPerRequest').message, /"voice" is not available.*\(5000\)/);
  assert.match(problemAt(error, 'Service:Pricing:Voice:elevenlabs:m').message, /leave this entry out/);
});

test('EVAL-35 the time of a judge can be set, the rest of online evaluation not yet', () => {
  const set = (key: string, value: string) => `Service:OnlineEvaluation:${key}=${value}`;
  const loaded = load({ args: [set('JudgeTimeout', '5s'), set('SampleRate', '0')] });
  assert.equal(loaded.values.Service.OnlineEvaluation.JudgeTimeout, 5000);
  const error = refuse({ args: [set('Enabled', 'true'), set('SampleRate', '0.1'), set('LowScoreThreshold', '50')] });
  assert.deepEqual(
    error.problems.map(({ key, code }) => [key, code]),
    ['Enabled', 'SampleRate', 'LowScoreThreshold'].map((key) => [
      `Service:OnlineEvaluation:${key}`,
      'feature-not-available',
    ]),
  );
});

test('CONF-8 secret sections may hold values before their features exist', () => {
  const yaml =
    'Service:\n  WebhookSecrets: { a: x }\n  TriggerSecrets: { a: x }\n  ProviderKeys: { a: x }\n  McpSecrets: { a: x }\n';
  assert.deepEqual(load({ yaml }).warnings, []);
});

test('CONF-14 every mark names a feature in kebab-case', () => {
  const marks = new Set<string>();
  const visit = (node: ConfigNode): void => {
    if (node.feature !== null) marks.add(node.feature);
    const children = node.node === 'group' ? [...Object.values(node.members), ...Object.values(node.rest)] : [];
    const inner =
      node.node === 'section'
        ? [node.group]
        : node.node === 'map'
          ? [node.entry]
          : node.node === 'list'
            ? [node.item]
            : [];
    for (const child of [...children, ...inner]) visit(child);
  };
  visit(configSchema);
  for (const mark of marks) assert.match(mark, /^[a-z0-9]+(-[a-z0-9]+)*$/);
});
