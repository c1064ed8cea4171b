import assert from 'node:assert/strict';
import { test } from 'node:test';
import { remoteAccessProblem, renderEffective } from '../../../src/core/config/index.ts';
import { ConfigFolder, load, problemAt, refuse } from './config-folder.ts';

const keyText = Buffer.alloc(32, 1).toString('base64');

test('CONF-14 all problems are reported together, with key, place and what was expected', () => {
  const yaml =
    'Host:\n  LogLevel: loud\n\nService:\n  Scheduling:\n    PolInterval: 2s\n    Lanes:\n      - ok\n      - Not Ok\n';
  const error = refuse({
    yaml,
    env: { Service__Drain__Timeout: 'soon' },
    args: ['Service:Tools:MaxIterations=0'],
    url: 'nowhere',
  });
  assert.deepEqual(
    error.problems.map(({ key, source, code }) => [key, source, code]),
    [
      ['Service:Scheduling:PolInterval', { kind: 'file', file: 'service.yaml', line: 6 }, 'unknown-key'],
      ['Host:Url', { kind: 'flag', name: '--url' }, 'invalid-value'],
      ['Host:LogLevel', { kind: 'file', file: 'service.yaml', line: 2 }, 'invalid-value'],
      ['Service:Tools:MaxIterations', { kind: 'flag', name: '--set Service:Tools:MaxIterations' }, 'invalid-value'],
      ['Service:Scheduling:Lanes:1', { kind: 'file', file: 'service.yaml', line: 9 }, 'invalid-value'],
      ['Service:Drain:Timeout', { kind: 'variable', name: 'Service__Drain__Timeout' }, 'invalid-value'],
    ],
  );
  const report = error.report();
  assert.match(report, /^The configuration has 6 problems:\n/);
  assert.match(
    report,
    /Host:LogLevel \(service\.yaml:2\)\n {4}expected one of trace, debug, info, warn, error; found "loud"/,
  );
});

test('CONF-14 mistakes in the notation of the file and in other sources are reported together', () => {
  const error = refuse({
    yaml: 'Host:\n  Url: [\n',
    env: { Service__Tools__MaxIterations: '0', Service__Providers__AzureOpenAI__ApiKey: 'k' },
  });
  assert.deepEqual(
    error.problems.map(({ key, code }) => [key, code]),
    [
      [null, 'syntax'],
      ['Service:Tools:MaxIterations', 'invalid-value'],
    ],
  );
});

test('CONF-14 problems of single values come before what this version lacks and before conflicts', () => {
  const yaml =
    'Service:\n  Voice: { RequireApproval: true, MaxConcurrentRequests: 0 }\n  AgentGraph: { ChildDeadline: 2m, WaitTimeout: 1m }\n  Pricing: { openai: { m: {} } }\n';
  assert.deepEqual(
    refuse({ yaml }).problems.map(({ key, code }) => [key, code]),
    [
      ['Service:Voice:MaxConcurrentRequests', 'invalid-value'],
      ['Service:Voice:RequireApproval', 'feature-not-available'],
      ['Service:AgentGraph:WaitTimeout', 'conflict'],
      ['Service:Pricing:openai:m', 'conflict'],
    ],
  );
});

test('CONF-15 an unknown key names the nearest known one, from any source', () => {
  const nearest: Record<string, string> = {
    'Service:Scheduling:PolInterval': 'Service:Scheduling:PollInterval',
    'Service:PollInterval': 'Service:Scheduling:PollInterval',
    'Service:Schedulling:PollInterval': 'Service:Scheduling',
    'Service:AuthToken': 'Host:AuthToken',
    'Service:Providers:Openai2:ApiKey': 'Service:Providers:OpenAI',
    'Service:Providers:Compatible:x:Modls': 'Service:Providers:Compatible:x:Models',
    // As other programs call them.
    'Service:Providers:OpenAI:BaseUrl': 'Service:Providers:OpenAI:Endpoint',
    'Service:Providers:Compatible:x:api_base': 'Service:Providers:Compatible:x:Endpoint',
    'Service:Providers:Anthropic:Key': 'Service:Providers:Anthropic:ApiKey',
    'Service:Pricing:openai:m:Inputs': 'Service:Pricing:openai:m:Input',
    'Service:Retention:IdempotencyKeys:MaxAgeDays': 'Service:Retention:',
    'Hosts:Url': 'Host',
    'Host::Url': 'Host',
  };
  for (const [key, expected] of Object.entries(nearest)) {
    const variable = key.replaceAll(':', '__');
    for (const error of [
      refuse({ args: [`${key}=1`] }),
      ...(key.startsWith('Hosts') ? [] : [refuse({ env: { [variable]: '1' } })]),
    ]) {
      assert.equal(error.problems[0]?.code, 'unknown-key', error.report());
      assert.ok(error.problems[0]?.message.includes(`nearest one is ${expected}`), error.report());
    }
  }
});

test('CONF-15 keys below a single value are refused', () => {
  const error = refuse({ args: ['Service:DefaultTenantId:More=1', 'Host:LogLevel:0=info'] });
  assert.deepEqual(
    error.problems.map(({ key }) => key),
    ['Host:LogLevel', 'Service:DefaultTenantId'],
  );
});

test('CONF-17 the effective tree has every key with its source', () => {
  const loaded = load({ yaml: 'Service:\n  Scheduling: { PollInterval: 2500ms }\n', env: { Host__LogLevel: 'warn' } });
  const lines = renderEffective(loaded, { json: false }).trimEnd().split('\n');
  assert.ok(lines.length > 300);
  assert.ok(lines.some((line) => /^Service:Scheduling:PollInterval +"2s500ms" {2}\(service\.yaml:2\)$/.test(line)));
  assert.ok(lines.some((line) => /^Host:LogLevel +"warn" {2}\(variable Host__LogLevel\)$/.test(line)));
  assert.ok(lines.some((line) => /^Host:Url +"http:\/\/127\.0\.0\.1:7070" {2}\(default\)$/.test(line)));
  const json = JSON.parse(renderEffective(loaded, { json: true }));
  assert.equal(json.file, loaded.file);
  assert.deepEqual(json.settings.length, lines.length);
});

test('CONF-17 the effective tree read back as flags gives the same tree', () => {
  const yaml =
    'Service:\n  Pricing: { openai: { m: { Input: 1 } } }\n  Providers: { OpenAI: { Models: [{ Name: a }] } }\n';
  const first = load({ yaml });
  const { settings } = JSON.parse(renderEffective(first, { json: true })) as {
    settings: { key: string; value: unknown }[];
  };
  const args = settings
    .filter(({ key, value }) => value !== null && key !== 'Host:AuthorizationPolicy')
    .map(({ key, value }) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  assert.deepEqual(load({ args }).values, first.values);
});

test('SEC-7 remote access needs a token, a key, OIDC or a handler', () => {
  const nobody = { hasActiveApiKey: false, hasAuthorizationHandler: false };
  const open = load({ yaml: 'Host:\n  AllowRemoteAccess: true\n' });
  const problem = remoteAccessProblem(open, nobody);
  assert.equal(problem?.key, 'Host:AllowRemoteAccess');
  assert.deepEqual(problem?.source, { kind: 'file', file: 'service.yaml', line: 2 });
  assert.equal(remoteAccessProblem(open, { ...nobody, hasActiveApiKey: true }), null);
  assert.equal(remoteAccessProblem(open, { ...nobody, hasAuthorizationHandler: true }), null);
  const guarded = load({ env: { Host__AllowRemoteAccess: 'true', Host__AuthToken: 't' } });
  assert.equal(remoteAccessProblem(guarded, nobody), null);
  assert.equal(remoteAccessProblem(load(), nobody), null);
});

test('CONF-14 an address that is not loopback is a warning while remote access is off', () => {
  const warned = (url: string, args: readonly string[] = []) => load({ url, args }).warnings.map(({ key }) => key);
  assert.deepEqual(warned('http://0.0.0.0:7070'), ['Host:Url']);
  assert.deepEqual(warned('http://[::]:7070'), ['Host:Url']);
  assert.deepEqual(warned('http://192.168.1.2:7070'), ['Host:Url']);
  for (const url of ['http://127.0.0.1:1', 'http://127.9.9.9:1', 'http://[::1]:1', 'http://localhost:1'])
    assert.deepEqual(warned(url), []);
  assert.deepEqual(warned('http://0.0.0.0:7070', ['Host:AllowRemoteAccess=true']), []);
});

/** Settings → keys at which a conflict must be reported. */
const conflictCases: Record<string, readonly [readonly string[], readonly string[]]> = {
  'OIDC needs issuer and audience': [['Host:Oidc:Audience=acp'], ['Host:Oidc']],
  'OIDC and tenancy name one tenant claim': [
    ['Host:Oidc:TenantClaim=a', 'Host:Tenancy:ClaimType=b'],
    ['Host:Oidc:TenantClaim'],
  ],
  'probes have paths of their own': [['Host:Health:LivePath=/health/ready'], ['Host:Health:ReadyPath']],
  'scripts need the acknowledgement': [['Service:Skills:Scripts:Enabled=true'], ['Service:Skills:Scripts:Enabled']],
  'the script runner needs it too': [['Host:SkillScripts:Register=true'], ['Host:SkillScripts:Register']],
  'the wait is longer than the deadline': [
    ['Service:AgentGraph:ChildDeadline=1m', 'Service:AgentGraph:WaitTimeout=60s'],
    ['Service:AgentGraph:WaitTimeout'],
  ],
  'MODEL-28 a price has input or output': [['Service:Pricing:openai:m:CachedInput=1'], ['Service:Pricing:openai:m']],
  'PostgreSQL needs a connection': [
    ['Service:Persistence:Provider=Postgres'],
    ['Service:Persistence:Postgres:ConnectionString'],
  ],
  'in-memory databases are shared': [
    ['Service:Persistence:Sqlite:ConnectionString=:memory:'],
    ['Service:Persistence:Sqlite:ConnectionString'],
  ],
  'orphans are silent for two heartbeats': [
    ['Service:RunReconciliation:OrphanThreshold=1m'],
    ['Service:RunReconciliation:OrphanThreshold'],
  ],
  'continuation needs reconciliation': [['Service:RunContinuation:Enabled=true'], ['Service:RunContinuation:Enabled']],
  'overlap is below half': [['Service:Knowledge:ChunkOverlap=500'], ['Service:Knowledge:ChunkOverlap']],
  'dimensions fit PostgreSQL': [
    [
      'Service:Persistence:Provider=Postgres',
      'Service:Knowledge:Dimensions=4001',
      'Service:Persistence:Postgres:ConnectionString=x',
    ],
    ['Service:Knowledge:Dimensions'],
  ],
  'embeddings need both': [['Service:Knowledge:EmbeddingModel=e'], ['Service:Knowledge']],
  'embeddings need a provider that exists': [
    ['Service:Knowledge:EmbeddingModel=e', 'Service:Knowledge:EmbeddingProvider=openai'],
    ['Service:Knowledge:EmbeddingProvider'],
  ],
  'images need both': [['Service:Images:Model=i'], ['Service:Images']],
  'secret prefixes differ': [
    ['Service:Mcp:AllowedConfigurationPrefix=service:webhooksecrets:'],
    ['Service:Mcp:AllowedConfigurationPrefix'],
  ],
  'the active key exists': [
    ['Service:AtRest:ActiveKeyId=k', `Service:AtRest:Keys:other=${keyText}`],
    ['Service:AtRest:ActiveKeyId'],
  ],
  'the utility model has a provider that exists': [
    ['Service:UtilityModel:Provider=openai', 'Service:Providers:Google={}'],
    ['Service:UtilityModel:Provider'],
  ],
  'MODEL-11 the utility model has a model, its own or the default of its provider': [
    ['Service:UtilityModel:Provider=google', 'Service:Providers:Google={}'],
    ['Service:UtilityModel:Model'],
  ],
  'MODEL-11 a scripted provider has no default model': [
    ['Service:UtilityModel:Provider=s', 'Service:Providers:Scripted:s:File=x.yaml'],
    ['Service:UtilityModel:Model'],
  ],
  'MODEL-11 the utility model has a provider': [['Service:UtilityModel:Model=m'], ['Service:UtilityModel:Provider']],
  'provider names are their own': [
    ['Service:Providers:OpenAI={}', 'Service:Providers:Compatible:openai={}'],
    ['Service:Providers:Compatible:openai'],
  ],
  'so are those of Responses surfaces': [
    ['Service:Providers:Compatible:a:EnableResponsesSurface=true', 'Service:Providers:Compatible:a-responses={}'],
    ['Service:Providers:Compatible:a-responses'],
  ],
  'and those of scripts': [
    ['Service:Providers:Compatible:a={}', 'Service:Providers:Scripted:a:File=x.yaml'],
    ['Service:Providers:Scripted:a'],
  ],
  'catalog names are their own': [
    ['Service:Providers:OpenAI:Models=[{"Name":"m"},{"Name":"m"}]'],
    ['Service:Providers:OpenAI:Models:1:Name'],
  ],
};

for (const [what, [args, keys]] of Object.entries(conflictCases))
  test(`CONF-14 ${what}`, () => {
    const { problems } = refuse({ args });
    const found = problems.filter(({ code }) => code !== 'feature-not-available');
    assert.deepEqual(
      found.map(({ key }) => key),
      keys,
    );
    assert.notEqual(found[0]?.source.kind, undefined);
  });

test('CONF-14 a provider that needs an endpoint is refused without one', () => {
  const error = refuse({ yaml: 'Service: { Providers: { AzureOpenAI: { ApiKey: k } } }' });
  assert.equal(problemAt(error, 'Service:Providers:AzureOpenAI:Endpoint').code, 'missing-value');
});

test('CONF-14 enabled scripts without the runner and judging without a judge are warnings', () => {
  const error = refuse({
    args: [
      'Service:Skills:Scripts:Enabled=true',
      'Service:Skills:Scripts:PlatformIsolationAcknowledged=true',
      'Service:OnlineEvaluation:Enabled=true',
      'Service:OnlineEvaluation:SampleRate=0.5',
    ],
  });
  assert.deepEqual(
    error.warnings.map(({ key }) => key),
    ['Service:Skills:Scripts:Enabled', 'Service:OnlineEvaluation:Enabled'],
  );
});

test('CONF-14 a store that processes share, where nobody closes the runs of one that dies, is a warning', () => {
  const warned = (...args: string[]) => load({ args }).warnings.map(({ key }) => key);
  const shared = [
    'Service:Persistence:Provider=Postgres',
    'Service:Persistence:Postgres:ConnectionString=postgres://db/acp',
  ];
  const isOn = 'Service:RunReconciliation:Enabled=true';
  assert.ok(warned(...shared).includes('Service:RunReconciliation:Enabled'));
  for (const args of [[...shared, isOn], [isOn], []])
    assert.ok(!warned(...args).includes('Service:RunReconciliation:Enabled'), args.join(' '));
});

test('MODEL-6 a section that exists registers the provider, with the defaults of its kind', () => {
  const yaml =
    'Service:\n  Providers:\n    Anthropic: {}\n    Compatible: { local: {} }\n    Scripted: { demo: { File: demo.yaml } }\n';
  using folder = new ConfigFolder();
  const { Providers } = folder.load({ yaml }).values.Service;
  assert.equal(Providers.OpenAI, null);
  assert.equal(Providers.AzureOpenAI, null);
  assert.equal(Providers.Anthropic?.DefaultMaxOutputTokens, 4096);
  assert.equal(Providers.Compatible['local']?.EnableResponsesSurface, false);
  assert.equal(Providers.Scripted['demo']?.File, `${folder.path}/demo.yaml`);
  assert.equal(Object.isFrozen(Providers), true);
});

test('MODEL-25 CONF-14 what goes with an exposed model names models that are exposed and answer', () => {
  const yaml = [
    'Service: { Providers: { OpenAI: { DefaultModel: big, Models: [{ Name: small }, { Name: embed, SupportsEmbeddings: true }] } } }',
    'Host: { OpenAiCompat: { Models: { openai: { big: { Fallbacks: [openai/big, openai/none, openai/embed, openai-responses/big, big] },',
    '  small: { CacheLifetime: 2d }, none: {}, embed: { CacheLifetime: 1m } }, nobody: { big: {} } } } }',
  ].join('\n');
  assert.deepEqual(
    refuse({ yaml }).problems.map(({ key, code }) => [key?.replace('Host:OpenAiCompat:Models:', ''), code]),
    [
      ['openai:big:Fallbacks:0', 'conflict'],
      ['openai:big:Fallbacks:1', 'conflict'],
      ['openai:big:Fallbacks:2', 'conflict'],
      ['openai:big:Fallbacks:4', 'conflict'],
      ['openai:small:CacheLifetime', 'conflict'],
      ['openai:none', 'conflict'],
      ['openai:embed', 'conflict'],
      ['nobody:big', 'conflict'],
    ],
  );
});
