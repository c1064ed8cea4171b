// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the references of a configuration file look like this
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ConfigFolder, load, problemAt, refuse } from './config-folder.ts';

test('CONF-1 flags come before variables, variables before the file, the file before defaults', () => {
  const yaml = 'Service:\n  Scheduling: { MaxConcurrentJobs: 3, MaxAttempts: 4, PollInterval: 5s }\n';
  const env = { Service__Scheduling__MaxConcurrentJobs: '6', Service__Scheduling__MaxAttempts: '7' };
  const { values, sources } = load({ yaml, env, args: ['Service:Scheduling:MaxConcurrentJobs=8'] });
  const { MaxConcurrentJobs, MaxAttempts, PollInterval, LeaseDuration } = values.Service.Scheduling;
  assert.deepEqual([MaxConcurrentJobs, MaxAttempts, PollInterval, LeaseDuration], [8, 7, 5000, 300_000]);
  assert.deepEqual(sources.get('Service:Scheduling:MaxConcurrentJobs'), {
    kind: 'flag',
    name: '--set Service:Scheduling:MaxConcurrentJobs',
  });
  assert.deepEqual(sources.get('Service:Scheduling:MaxAttempts'), {
    kind: 'variable',
    name: 'Service__Scheduling__MaxAttempts',
  });
  assert.deepEqual(sources.get('Service:Scheduling:PollInterval'), { kind: 'file', file: 'service.yaml', line: 2 });
  assert.deepEqual(sources.get('Service:Scheduling:LeaseDuration'), { kind: 'default' });
});

test('CONF-2 the file is --config, else ACP_CONFIG, else service.yaml of the working directory', () => {
  using folder = new ConfigFolder();
  assert.equal(folder.load().file, null);
  const byDefault = folder.write('service.yaml', 'Service: { DefaultTenantId: by-default }');
  const byVariable = folder.write('variable.yaml', 'Service: { DefaultTenantId: by-variable }');
  folder.write('flag.yaml', '{"Service": {"DefaultTenantId": "by-flag"}}');
  assert.equal(folder.load().values.Service.DefaultTenantId, 'by-default');
  assert.equal(folder.load().file, byDefault);
  const env = { ACP_CONFIG: byVariable };
  assert.equal(folder.load({ env }).values.Service.DefaultTenantId, 'by-variable');
  assert.equal(folder.load({ env, configPath: 'flag.yaml' }).values.Service.DefaultTenantId, 'by-flag');
});

test('CONF-2 a named file that cannot be read is an error that says so', () => {
  using folder = new ConfigFolder();
  const byFlag = folder.refuse({ configPath: 'nowhere.yaml' });
  assert.equal(byFlag.problems[0]?.code, 'file-unreadable');
  assert.deepEqual(byFlag.problems[0]?.source, { kind: 'flag', name: '--config' });
  assert.match(byFlag.report(), /nowhere\.yaml: there is no such file/);
  const byVariable = folder.refuse({ env: { ACP_CONFIG: folder.path } });
  assert.deepEqual(byVariable.problems[0]?.source, { kind: 'variable', name: 'ACP_CONFIG' });
  assert.match(byVariable.report(), /it is a folder/);
  mkdirSync(join(folder.path, 'service.yaml'));
  assert.equal(folder.refuse({}).problems[0]?.code, 'file-unreadable');
});

test('CONF-2 the top level has only Service and Host', () => {
  const error = refuse({ yaml: 'Service: {}\nServices: {}\n' });
  assert.match(problemAt(error, 'Services').message, /nearest one is Service$/);
});

test('CONF-3 two underscores separate the levels of a variable, and other variables are ignored', () => {
  const env = {
    Service__Providers__Compatible__local__Endpoint: 'http://127.0.0.1:11434/v1',
    HOST: 'somewhere',
    SERVICE_PORT: '80',
    Service__Drain__Timeout: undefined,
  };
  const { values } = load({ env });
  assert.equal(values.Service.Providers.Compatible['local']?.Endpoint, 'http://127.0.0.1:11434/v1');
  assert.equal(values.Service.Providers.OpenAI, null);
});

test('CONF-4 --set takes any key, its value may hold equals signs, and the last one counts', () => {
  const args = ['Service:Pricing:Currency=a=b', 'service:scheduling:maxattempts=1', 'Service:Scheduling:MaxAttempts=2'];
  const { values } = load({ args });
  assert.equal(values.Service.Pricing.Currency, 'a=b');
  assert.equal(values.Service.Scheduling.MaxAttempts, 2);
  const error = refuse({ args: ['sk-secret-without-key'] });
  assert.match(error.report(), /expected --set Service:A:B=value/);
  assert.doesNotMatch(error.report(), /sk-secret/);
});

test('CONF-4 --url and --prefix set Host:Url and Host:Prefix', () => {
  const { values, sources } = load({
    yaml: 'Host: { Url: "http://127.0.0.1:1" }',
    url: 'http://localhost:2',
    prefix: '/acp',
  });
  assert.deepEqual([values.Host.Url, values.Host.Prefix], ['http://localhost:2', '/acp']);
  assert.deepEqual(sources.get('Host:Url'), { kind: 'flag', name: '--url' });
});

test('CONF-4 a secret on the command line is accepted with a warning', () => {
  const { values, warnings } = load({ args: ['Host:AuthToken=tok'] });
  assert.equal(values.Host.AuthToken, 'tok');
  assert.deepEqual(
    warnings.map(({ key, code }) => [key, code]),
    [['Host:AuthToken', 'insecure']],
  );
});

test('CONF-5 key names ignore case, chosen names are kept as written', () => {
  const yaml = 'SERVICE:\n  scheduling: { POLLINTERVAL: 1s }\n  Pricing: { OpenAI: { "Qwen3:8B": { input: 1 } } }\n';
  const { values, sources } = load({ yaml, env: { SERVICE__drain__TIMEOUT: '1s' } });
  assert.equal(values.Service.Scheduling.PollInterval, 1000);
  assert.equal(values.Service.Drain.Timeout, 1000);
  assert.deepEqual(Object.keys(values.Service.Pricing.Models), ['OpenAI']);
  assert.equal(values.Service.Pricing.Models['OpenAI']?.['Qwen3:8B']?.Input, 1);
  assert.equal(sources.get('Service:Scheduling:PollInterval')?.kind, 'file');
});

test('CONF-5 one key in two spellings is an error in the file and in variables', () => {
  const inFile = refuse({ yaml: 'Host: { LogLevel: info, loglevel: warn }' });
  assert.equal(problemAt(inFile, 'Host:LogLevel').code, 'conflict');
  const inVariables = refuse({ env: { Host__LogLevel: 'info', HOST__LOGLEVEL: 'warn' } });
  assert.equal(problemAt(inVariables, 'Host:LogLevel').code, 'conflict');
  const sections = load({ env: { Service__Drain__Timeout: '1s', SERVICE__DRAIN__ENABLED: 'false' } });
  assert.deepEqual(sections.values.Service.Drain, { Timeout: 1000, Enabled: false });
});

test('CONF-6 text is read by the type of the key', () => {
  const env = {
    Service__AgentGraph__MaxTotalCost: '1.5',
    Service__Scheduling__Enabled: 'FALSE',
    Service__Persistence__Provider: 'memory',
    Host__Agents: '["a", "b"]',
    Host__Tools__1: 'd',
    Host__Tools__0: 'c',
    Service__Scheduling__MaxConcurrentJobsPerLane: '{"bulk": 2}',
    Service__Providers__OpenAI: '{}',
    Service__Providers__Google__Models__0__Name: 'gemini',
    Service__Providers__Google__Models__0__SupportsTools: 'false',
  };
  using folder = new ConfigFolder();
  const { Service, Host } = folder.load({ env }).values;
  assert.equal(Service.AgentGraph.MaxTotalCost, 1.5);
  assert.equal(Service.Scheduling.Enabled, false);
  assert.equal(Service.Persistence.Provider, 'Memory');
  assert.deepEqual(Host.Agents, [join(folder.path, 'a'), join(folder.path, 'b')]);
  assert.deepEqual(Host.Tools, [join(folder.path, 'c'), join(folder.path, 'd')]);
  assert.deepEqual(Service.Scheduling.MaxConcurrentJobsPerLane, { bulk: 2 });
  assert.notEqual(Service.Providers.OpenAI, null);
  assert.equal(Service.Providers.Google?.Models[0]?.SupportsTools, false);
});

test('CONF-6 empty text is null where null is allowed, else an error', () => {
  const yaml = 'Host: { Health: { LivePath: /alive } }\nService: { Providers: { OpenAI: {} } }\n';
  const { values } = load({ yaml, env: { Host__Health__LivePath: '', Service__Providers__OpenAI: '' } });
  assert.equal(values.Host.Health.LivePath, null);
  assert.equal(values.Service.Providers.OpenAI, null);
  const error = refuse({ env: { Host__LogLevel: '', Service__Scheduling__Lanes: '' } });
  assert.deepEqual(error.problems.map(({ key }) => key).sort(), ['Host:LogLevel', 'Service:Scheduling:Lanes']);
});

test('CONF-6 mistakes in JSON text and indexes are named without the text', () => {
  const error = refuse({
    env: {
      Host__Agents: '["sk-secret"',
      Host__Tools__0: 'a',
      Host__Tools__2: 'b',
      Host__Modules: '["a"]',
      Host__Modules__0: 'b',
    },
  });
  assert.match(problemAt(error, 'Host:Agents').message, /valid JSON/);
  assert.match(problemAt(error, 'Host:Tools').message, /index 1/);
  assert.match(problemAt(error, 'Host:Modules').message, /both are given/);
  assert.doesNotMatch(error.report(), /sk-secret/);
});

test('CONF-7 a list replaces the lower one whole, maps are joined by name', () => {
  const yaml = `
Host: { Agents: [a, b, c] }
Service:
  Scheduling: { LaneByHandlerKey: { one: lane-a, two: lane-b } }
  Providers: { Compatible: { local: { Endpoint: "http://127.0.0.1:1", DefaultModel: low } } }
  ProviderKeys: { Crm: low, other: kept }
`;
  const env = {
    Host__Agents__0: 'z',
    Service__Scheduling__LaneByHandlerKey__two: 'lane-c',
    Service__Providers__Compatible__local__DefaultModel: 'high',
    Service__Providers__Compatible__second__DefaultModel: 'new',
    Service__ProviderKeys__CRM: 'high',
  };
  using folder = new ConfigFolder();
  const { Host, Service } = folder.load({ yaml, env }).values;
  assert.deepEqual(Host.Agents, [join(folder.path, 'z')]);
  assert.deepEqual(Service.Scheduling.LaneByHandlerKey, { one: 'lane-a', two: 'lane-c' });
  assert.equal(Service.Providers.Compatible['local']?.Endpoint, 'http://127.0.0.1:1');
  assert.equal(Service.Providers.Compatible['local']?.DefaultModel, 'high');
  assert.deepEqual(Object.keys(Service.Providers.Compatible), ['local', 'second']);
  assert.deepEqual(Service.ProviderKeys.toJSON(), ['CRM', 'other']);
});

test('CONF-10 relative paths start at the folder of the file, else at the working directory', () => {
  using folder = new ConfigFolder();
  mkdirSync(join(folder.path, 'etc'));
  folder.write(
    'etc/acp.yaml',
    'Host: { Agents: [agents, /abs], Tools: ["${env:TOOLS}"] }\nService: { Persistence: { Sqlite: { ConnectionString: "file:x.db?cache=private" } } }\n',
  );
  const { Host, Service } = folder.load({
    configPath: 'etc/acp.yaml',
    env: { Host__Modules__0: 'm.mjs', TOOLS: 'tools' },
  }).values;
  assert.deepEqual(Host.Agents, [join(folder.path, 'etc/agents'), '/abs']);
  assert.deepEqual(Host.Tools, [join(folder.path, 'etc/tools')]);
  assert.deepEqual(Host.Modules, [join(folder.path, 'm.mjs')]);
  assert.equal(Service.Persistence.Sqlite.ConnectionString, `file:${join(folder.path, 'etc/x.db')}?cache=private`);
  const fromFlag = folder.load({ args: ['Service:Persistence:Sqlite:ConnectionString=data/a.db'] });
  assert.equal(fromFlag.values.Service.Persistence.Sqlite.ConnectionString, join(folder.path, 'data/a.db'));
});
