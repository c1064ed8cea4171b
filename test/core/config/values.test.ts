import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration, parseDuration } from '../../../src/core/config/duration.ts';
import { configSchema } from '../../../src/core/config/schema.ts';
import type { ConfigNode, Setting } from '../../../src/core/config/schema-nodes.ts';
import { load, refuse } from './config-folder.ts';

test('CONF-11 durations are read in every notation', () => {
  const expected: Record<string, number> = {
    '250ms': 250,
    '30s': 30_000,
    '5m': 300_000,
    '1h30m': 5_400_000,
    '2d': 172_800_000,
    '1d2h3m4s5ms': 93_784_005,
    '1.5s': 1500,
    '1H': 3_600_000,
    PT30S: 30_000,
    P1DT2H: 93_600_000,
    P2W: 1_209_600_000,
    'PT0.25S': 250,
    '00:00:30': 30_000,
    '12:34:56': 45_296_000,
    '00:00:00.250': 250,
    '1.00:00:00': 86_400_000,
    '0s': 0,
  };
  for (const [text, ms] of Object.entries(expected)) {
    assert.equal(parseDuration(text), ms, text);
    assert.equal(parseDuration(formatDuration(ms)), ms, formatDuration(ms));
  }
  for (const text of [
    '',
    '30',
    '30 s',
    's',
    '-5s',
    '+5s',
    'PT',
    'P',
    'P1DT',
    '1m1h',
    '5 minutes',
    '00:30',
    '00:60:00',
    '00:00:60',
    '0.0001s',
    '1e3s',
    '٣s',
    `${'9'.repeat(30)}d`,
    'Infinity',
  ])
    assert.equal(parseDuration(text), undefined, text);
});

test('CONF-11 a bare number is an error, from the file, a variable or a flag', () => {
  const error = refuse({
    yaml: 'Service: { Scheduling: { PollInterval: 10 } }',
    env: { Service__Drain__Timeout: '10' },
    args: ['Service:Tools:DefaultTimeout=10'],
  });
  assert.deepEqual(error.problems.map(({ key }) => key).sort(), [
    'Service:Drain:Timeout',
    'Service:Scheduling:PollInterval',
    'Service:Tools:DefaultTimeout',
  ]);
  assert.match(error.report(), /expected a duration .*; found 10/);
});

test('CONF-11 durations are positive unless the table allows 0', () => {
  assert.equal(load({ args: ['Service:Drain:Timeout=0s'] }).values.Service.Drain.Timeout, 0);
  assert.match(refuse({ args: ['Service:Scheduling:PollInterval=0s'] }).report(), /expected a duration/);
  assert.match(refuse({ args: ['Service:Scheduling:LeaseDuration=9s'] }).report(), /at least 10s/);
  assert.match(refuse({ args: ['Service:Tools:DefaultTimeout=25d'] }).report(), /at most 24 days/);
});

test('CONF-12 booleans and enumerations ignore case', () => {
  const yaml =
    'Host: { LogLevel: WARN }\nService: { Drain: { Enabled: False }, Persistence: { Sqlite: { Synchronous: FULL } } }\n';
  const { Host, Service } = load({ yaml }).values;
  assert.deepEqual(
    [Host.LogLevel, Service.Drain.Enabled, Service.Persistence.Sqlite.Synchronous],
    ['warn', false, 'Full'],
  );
});

/** Key → values that must be refused, and values that must be accepted. */
const limits: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['Service:DefaultTenantId', ['', 'a b', 'a'.repeat(65), 'ä'], ['A.b_c-1']],
  ['Service:AgentGraph:MaxDepth', ['-1', '1.5', 'x', '0x10'], ['0', '9']],
  ['Service:AgentGraph:MaxTotalTokens', ['1e3', '9007199254740993'], ['-1', '0', '+5']],
  ['Service:AgentGraph:MaxTotalCost', ['-0.01', 'NaN', 'Infinity', '1,5'], ['0', '.5', '1e-3', '']],
  ['Service:Agents:MaxParameterValueLength', ['0', '4KB'], ['1']],
  ['Service:Tools:DefaultMaxOutputBytes', ['56'], ['57', '']],
  ['Service:Tools:MaxConsecutiveErrors', ['101', '-1'], ['0', '100']],
  ['Service:Tools:MaxIterations', ['0', '1001'], ['1', '1000']],
  ['Service:Preflight:ReserveRatio', ['1', '-0.1', '1.1'], ['0', '0.99']],
  ['Service:Idempotency:MaxKeyLength', ['0', '1025'], ['1024']],
  ['Service:RunRecording:MaxPayloadLength', ['-1', '1048577'], ['0', '1048576']],
  ['Service:RunRecording:Enabled', ['yes', '1', 'on', ''], ['true', 'FALSE']],
  ['Service:Persistence:Provider', ['MySql', ''], ['memory', 'SQLITE']],
  ['Service:Persistence:Sqlite:TablePrefix', ['Service_', '1a', 'a-b', 'a'.repeat(33)], ['a', 'acp_']],
  ['Service:Persistence:Postgres:SchemaName', ['Acp-Prod "x"', 'pg_x', '', 'a'.repeat(64)], ['service', 'user', 'pgx']],
  ['Service:Persistence:Sqlite:CommandTimeoutSeconds', ['0', '30s'], ['1']],
  [
    'Service:Persistence:Sqlite:ConnectionString',
    [':memory:', 'file::memory:', 'file:x?mode=memory'],
    ['file:x?mode=memory&cache=shared', 'a.db', ''],
  ],
  ['Host:Prefix', ['acp', '/acp/', '/', '/a b', '/a?b', '/a//b'], ['', '/acp', '/a/b']],
  [
    'Host:Url',
    [
      '127.0.0.1:7070',
      'ftp://127.0.0.1',
      'http://u:p@127.0.0.1',
      'http://127.0.0.1/path',
      'http://127.0.0.1?x',
      'http://',
      '',
    ],
    ['http://127.0.0.1:0', 'http://[::1]:7070', 'http://localhost'],
  ],
  ['Host:AuthToken', ['with space', 'line\nend', 'ä'], ['abc', '']],
  ['Host:Tenancy:HeaderName', ['X Y', 'X:Y', ''], ['X-Tenant']],
  ['Host:Tenancy:AllowedTenants', ['a', '[1]', '["a b"]', '["a","a"]', '{"a":1}'], ['["a","b"]', '[]']],
  ['Host:Health:LivePath', ['alive', '/alive/'], ['/alive', '']],
  ['Host:LogLevel', ['fatal', 'silent'], ['TRACE', 'error']],
  ['Host:AuthorizationPolicy', ['x', ''], []],
  [
    'Service:Skills:Scripts:Interpreters',
    [
      '{"py":"python3"}',
      '{".py":"/usr/bin/python3"}',
      '{"py":{"Arguments":[]}}',
      '{"py":{"Command":"/p","Shell":true}}',
    ],
    ['{"py":"/usr/bin/python3","sh":{"Command":"/bin/sh","Arguments":["-e"]}}'],
  ],
  ['Service:Scheduling:Lanes', ['["A"]', '["a","a"]', '["-a"]'], ['["a.b-c_1"]']],
  ['Service:Scheduling:MaxConcurrentJobsPerLane', ['{"a":0}', '{"A":1}', '[1]', 'x'], ['{"a":1}', '{}']],
  ['Service:Providers:Anthropic:DefaultMaxOutputTokens', ['0', ''], ['1']],
  [
    'Service:Providers:OpenAI:Endpoint',
    ['localhost', 'http://u@h/v1', 'http://h/v1#x', 'javascript:alert(1)'],
    ['http://h/v1', ''],
  ],
  [
    'Service:Providers:OpenAI:Models',
    [
      '[{}]',
      '[{"Name":""}]',
      '[{"Name":"a","Nme":1}]',
      '[{"Name":"a"},{"Name":"a"}]',
      '["a"]',
      '[{"Name":"a","ContextWindowTokens":0}]',
      '[{"Name":"a","InputCostPerMillionTokens":-1}]',
    ],
    ['[{"Name":"a"},{"name":"b"}]'],
  ],
  ['Service:Pricing:openai:m:Input', ['-1', 'free'], ['0', '0.25']],
  ['Service:Attachments:MaxBytes', ['0', '1073741825'], ['1', '1073741824']],
  [
    'Service:Attachments:AllowedMediaTypes',
    ['["image"]', '["*/*"]', '["image/*"]', '["video/mp4"]'],
    ['["IMAGE/PNG", "audio/*"]'],
  ],
  [
    'Host:AllowedOrigins',
    ['["*"]', '["https://a.example/path"]', '["a.example"]'],
    ['["https://a.example:8443"]', '["https://a.example"]'],
  ],
  [
    'Service:ContentGuard:Pattern:DeniedTerms',
    ['[""]', '[" "]', '["a","\\u200b"]', `["${'x'.repeat(257)}"]`],
    ['["Project Zeus","機密"]', '[]'],
  ],
  [
    'Service:ContentGuard:Pattern:MaskedPii',
    ['Names', 'Email,', '["Email","x"]'],
    ['Email, iban', 'all', '["Email","Iban"]'],
  ],
  ['Service:ContentGuard:Pattern:MaskReplacement', ['x'.repeat(65)], ['', 'x']],
  ['Host:TrustedProxies', ['["10.0.0.0/33"]', '["proxy"]', '["::1/129"]'], ['["10.0.0.0/8","::1"]']],
  ['Service:Health:BackgroundInterval', ['4s'], ['5s']],
  ['Service:Retention:Runs:MaxAgeDays', ['0'], ['1']],
  ['Service:Retention:BatchSize', ['50001'], ['1']],
  ['Service:RateLimit:Partition', ['User'], ['apikey']],
  ['Service:Quotas:TimeZone', ['Mars/Base', '+02:00', ''], ['Europe/Berlin']],
  ['Service:Quotas:ThresholdPercents', ['[0]', '[101]', '[80,80]'], ['[50]', '[]']],
  ['Service:Webhooks:RetryDelays', ['[60]', '60s', '["0s"]'], ['["90s","60d"]', '[]']],
  ['Service:Webhooks:AllowedConfigurationPrefix', ['WebhookSecrets:', 'Service:WebhookSecrets'], ['Service:Other:']],
  ['Service:AtRest:Keys:k1', ['short', 'A'.repeat(44)], [`${Buffer.alloc(32, 7).toString('base64')}`]],
];

for (const [key, refused, accepted] of limits)
  test(`CONF-16 ${key} takes its type and range and corrects nothing`, () => {
    for (const value of refused) {
      const { problems } = refuse({ args: [`${key}=${value}`] });
      assert.equal(
        problems.every((problem) => problem.key?.startsWith(key)),
        true,
        `${value}: ${JSON.stringify(problems)}`,
      );
    }
    for (const value of accepted) load({ args: [`${key}=${value}`] });
  });

test('CONF-16 SEC-14 an issuer is an https URL, and http only on this machine', () => {
  const withIssuer = (issuer: string) => ({ args: [`Host:Oidc:Issuer=${issuer}`, 'Host:Oidc:Audience=acp'] });
  const bad = ['http://a.example', 'http://127.0.0.1.a.example', 'https://a.example?x=1', 'https://u@a.example', 'a'];
  for (const issuer of bad)
    assert.deepEqual(
      refuse(withIssuer(issuer)).problems.map(({ key }) => key),
      ['Host:Oidc:Issuer'],
      issuer,
    );
  const good = ['https://a.example', 'https://a.example/realm/', 'http://127.0.0.1:8080', 'http://localhost/realm'];
  for (const issuer of good) assert.equal(load(withIssuer(issuer)).values.Host.Oidc.Issuer, issuer);
});

/** Keys of features that come later are checked all the same: the problem is the value, not only the feature. */
const laterCases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['Service:Images:DefaultSize', ['1024', '0x1'], ['512x768']],
  ['Service:Images:MaxCount', ['11'], ['10']],
  ['Service:Voice:Conversation:InputSampleRate', ['7999'], ['48000']],
  ['Service:Knowledge:Dimensions', ['8193'], ['8192']],
];

for (const [key, refused, accepted] of laterCases)
  test(`CONF-16 ${key} is checked before its feature exists`, () => {
    for (const value of refused) {
      const { problems } = refuse({ args: [`${key}=${value}`] });
      assert.match(problems[0]?.code ?? '', /^(invalid-value|missing-value|unknown-key)$/, value);
    }
    for (const value of accepted) {
      const { problems } = refuse({ args: [`${key}=${value}`] });
      assert.equal(
        problems.every(({ code }) => code === 'feature-not-available' || code === 'conflict'),
        true,
        value,
      );
      assert.equal(
        problems.some(({ code }) => code === 'feature-not-available'),
        true,
        value,
      );
    }
  });

test('CONF-16 typed values of the file are not converted', () => {
  const yaml = `
Host: { LogLevel: 1, Prefix: null }
Service:
  Scheduling: { MaxAttempts: "3", RunWorker: 1, Lanes: default }
  Pricing: { Currency: 1.10 }
  AgentGraph: { MaxTotalCost: .inf, MaxDepth: 1.0 }
  Providers: { OpenAI: null, Google: [], Anthropic: text, Compatible: { a: null } }
  ProviderKeys:
  Idempotency:
`;
  const keys = refuse({ yaml }).problems.map(({ key }) => key);
  assert.deepEqual(keys.sort(), [
    'Host:LogLevel',
    'Host:Prefix',
    'Service:AgentGraph:MaxTotalCost',
    'Service:Pricing:Currency',
    'Service:Providers:Anthropic',
    'Service:Providers:Compatible:a',
    'Service:Providers:Google',
    'Service:Providers:OpenAI',
    'Service:Scheduling:Lanes',
    'Service:Scheduling:MaxAttempts',
    'Service:Scheduling:RunWorker',
  ]);
});

const settings = function* (node: ConfigNode, path: string): Generator<readonly [string, Setting<unknown>]> {
  if (node.node === 'setting') yield [path, node];
  else if (node.node === 'group') {
    for (const [name, member] of [...Object.entries(node.members), ...Object.entries(node.rest)])
      yield* settings(member, `${path}:${name}`);
  } else if (node.node === 'section') yield* settings(node.group, path);
  else if (node.node === 'list') yield* settings(node.item, path);
  else if (node.node === 'map') yield* settings(node.entry, path);
};

test('CONF-18 every default satisfies the type and range of its own key', () => {
  const all = [...settings(configSchema, '')];
  assert.ok(all.length > 300, `${all.length} settings`);
  for (const [key, node] of all) {
    if (node.fallback !== undefined) {
      const shown = JSON.parse(JSON.stringify(node.kind.show(node.fallback)));
      const raw = Array.isArray(shown)
        ? { kind: 'list' as const, items: shown.map(scalar), source: { kind: 'default' as const } }
        : scalar(shown);
      const reject = (): undefined => assert.fail(`${key}: ${JSON.stringify(shown)}`);
      assert.deepEqual(node.kind.parse(raw, { folder: '/', reject }), node.fallback, key);
    }
  }
});

const scalar = (value: string | number | boolean | null) =>
  ({ kind: 'scalar', value, typed: true, hidden: false, source: { kind: 'default' } }) as const;
