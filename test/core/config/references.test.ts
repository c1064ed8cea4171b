// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the references of a configuration file look like this
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { test } from 'node:test';
import { renderEffective, resolveReferences, resolveSecret, resolveSecrets } from '../../../src/core/config/index.ts';
import { ConfigFolder, load, problemAt, refuse } from './config-folder.ts';

test('CONF-8 texts of the file take variables, files and other keys', () => {
  using folder = new ConfigFolder();
  folder.write('token', 'from-file\n');
  folder.write('two-ends', 'kept\n\r\n');
  const yaml = `
Host:
  AuthToken: \${file:token}
Service:
  DefaultTenantId: t-\${env:REGION}-\${key:Service:Scheduling:MaxAttempts}
  Scheduling: { MaxAttempts: "\${env:ATTEMPTS}" }
  Pricing: { Currency: "$\${env:REGION} \${not}" }
`;
  assert.match(problemAt(folder.refuse({ yaml }), 'Service:Pricing:Currency').message, /\$\{env:NAME\}/);
  const env = { REGION: 'eu', ATTEMPTS: '7' };
  const { values } = folder.load({ yaml: yaml.replace('${not}', () => '$${key'), env });
  assert.equal(values.Host.AuthToken, 'from-file');
  assert.equal(values.Service.DefaultTenantId, 't-eu-7');
  assert.equal(values.Service.Scheduling.MaxAttempts, 7);
  assert.equal(values.Service.Pricing.Currency, '${env:REGION} ${key');
  const two = folder.load({ yaml: 'Service: { Pricing: { Currency: "${file:two-ends}" } }' });
  assert.equal(two.values.Service.Pricing.Currency, 'kept\n');
});

test('CONF-8 references are for the file: text from variables and flags stays as it is', () => {
  const { values } = load({ env: { Service__Pricing__Currency: '${env:HOME}', HOME: '/root' } });
  assert.equal(values.Service.Pricing.Currency, '${env:HOME}');
});

test('CONF-8 a key reference sees the highest source, defaults and secrets', () => {
  const yaml = `
Service:
  ProviderKeys: { shared: "\${env:KEY}", "acme:shared": other, "a:b:c": deep }
  Providers:
    OpenAI: { ApiKey: "\${key:Service:ProviderKeys:shared}", DefaultModel: "\${key:service:defaultTenantId}" }
    Anthropic: { ApiKey: "\${key:Service:Providers:OpenAI:ApiKey}", DefaultModel: "\${key:Service:Scheduling:PollInterval}" }
    Google: { ApiKey: "\${key:Service:ProviderKeys:acme:shared}" }
`;
  const { OpenAI, Anthropic, Google } = load({ yaml, env: { KEY: 'k1', Service__DefaultTenantId: 'high' } }).values
    .Service.Providers;
  assert.deepEqual([OpenAI?.ApiKey, OpenAI?.DefaultModel], ['k1', 'high']);
  assert.deepEqual([Anthropic?.ApiKey, Anthropic?.DefaultModel], ['k1', '10s']);
  assert.equal(Google?.ApiKey, 'other');
});

test('CONF-8 what cannot be resolved is an error that tells why and never a value', () => {
  using folder = new ConfigFolder();
  folder.write('binary', new Uint8Array([0xff, 0xfe, 0x00]));
  const yaml = `
Host:
  AuthToken: \${env:NOWHERE}
  LogLevel: \${key:Host:Url}
Service:
  DefaultTenantId: \${key:Service:Pricing:Currency}
  Pricing: { Currency: "\${key:Service:DefaultTenantId}" }
  Providers:
    OpenAI: { ApiKey: "\${file:missing}", DisplayName: "\${file:binary}", DefaultModel: "\${key:Service:Nothing}" }
    Google: { ApiKey: "\${key:Service:ProviderKeys:none}", DisplayName: "\${key:Service:Scheduling}", DefaultModel: "\${what:x}" }
    Anthropic: { DisplayName: "\${file:.}", DefaultModel: "\${env:OPEN", ApiKey: "\${key:Service:Google:ApiKey}" }
`;
  const error = folder.refuse({ yaml });
  const messages = Object.fromEntries(error.problems.map(({ key, message }) => [key, message]));
  assert.match(messages['Host:AuthToken'] ?? '', /variable NOWHERE is not set/);
  assert.match(messages['Host:LogLevel'] ?? '', /not a key below Service/);
  assert.match(messages['Service:DefaultTenantId'] ?? '', /circle/);
  assert.match(messages['Service:Providers:OpenAI:ApiKey'] ?? '', /missing: there is no such file/);
  assert.match(messages['Service:Providers:OpenAI:DisplayName'] ?? '', /not UTF-8/);
  assert.match(messages['Service:Providers:OpenAI:DefaultModel'] ?? '', /not a key/);
  assert.match(messages['Service:Providers:Google:ApiKey'] ?? '', /has no value/);
  assert.match(messages['Service:Providers:Google:DisplayName'] ?? '', /is a section/);
  assert.match(messages['Service:Providers:Google:DefaultModel'] ?? '', /expected \$\{env:NAME\}/);
  assert.match(messages['Service:Providers:Anthropic:DisplayName'] ?? '', /not a file/);
  assert.match(messages['Service:Providers:Anthropic:DefaultModel'] ?? '', /expected \$\{env:NAME\}/);
  assert.equal(
    error.problems.every(({ code }) => code === 'unresolved-reference'),
    true,
  );
});

test('CONF-8 below the secret sections it leaves the secret without a value, with a warning', () => {
  const yaml =
    'Service:\n  WebhookSecrets:\n    crm: ${env:NOWHERE}\n    other: ${file:/nowhere/at-all}\n    third: value\n';
  const { values, warnings } = load({ yaml });
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:crm'), null);
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:other'), null);
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:third'), 'value');
  assert.deepEqual(
    warnings.map(({ key }) => key),
    ['Service:WebhookSecrets:crm', 'Service:WebhookSecrets:other'],
  );
});

test('CONF-9 a secret from a file counts anew at each use', () => {
  using folder = new ConfigFolder();
  const path = folder.write('hook', 'first\n');
  const yaml = 'Service:\n  WebhookSecrets: { crm: "${file:hook}", alias: "x-${key:Service:WebhookSecrets:crm}" }\n';
  const { values } = folder.load({ yaml });
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:crm'), 'first');
  folder.write('hook', 'second');
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:crm'), 'second');
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:alias'), 'x-second');
  rmSync(path);
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:crm'), null);
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:alias'), null);
});

test('CONF-9 elsewhere a file is read once', () => {
  using folder = new ConfigFolder();
  folder.write('token', 'first');
  const { values } = folder.load({ yaml: 'Host: { AuthToken: "${file:token}" }' });
  folder.write('token', 'second');
  assert.equal(values.Host.AuthToken, 'first');
});

test('SEC-45 names of secrets ignore case, take __ for a colon and stay inside the four sections', () => {
  const yaml =
    'Service:\n  ProviderKeys: { acme: { OpenAI: tenant }, openai: own, "b:c": colon }\n  McpSecrets: { loop: "${key:Service:McpSecrets:loop}" }\n';
  const { values } = load({ yaml });
  assert.equal(resolveSecret(values, 'service:providerkeys:acme:OPENAI'), 'tenant');
  assert.equal(resolveSecret(values, 'SERVICE__PROVIDERKEYS__acme__openai'), 'tenant');
  assert.equal(resolveSecret(values, 'Service__ProviderKeys__openai'), 'own');
  assert.equal(resolveSecret(values, 'Service__ProviderKeys:openai'), 'own');
  assert.equal(resolveSecret(values, 'Service:ProviderKeys:b:c'), 'colon');
  for (const key of [
    'Service:ProviderKeys',
    'Service:ProviderKeys:',
    'Service:DefaultTenantId',
    'Host:AuthToken',
    '',
    'ProviderKeys:openai',
    'Service:ProviderKeys:__proto__',
    'Service:ProviderKeysX:openai',
  ])
    assert.equal(resolveSecret(values, key), null, key);
  assert.equal(resolveSecret(values, 'Service:McpSecrets:loop'), null);
});

test('SEC-45 the tenant in the name of a secret counts to the letter', () => {
  const yaml = `Service:
  ProviderKeys: { blue: { openai: of-blue }, BLUE: { openai: of-BLUE }, a__b: { openai: of-a__b } }
  WebhookSecrets:
    copy: \${key:Service:ProviderKeys:BLUE:OpenAI}
    none: \${key:Service:ProviderKeys:Blue:openai}
`;
  const env = { Service__ProviderKeys__Red__openai: 'of-Red', Service__ProviderKeys__BLUE__OpenAI: 'newer' };
  const { values } = load({ yaml, env });
  assert.equal(resolveSecret(values, 'Service:ProviderKeys:blue:openai'), 'of-blue');
  assert.equal(resolveSecret(values, 'Service:ProviderKeys:BLUE:openai'), 'newer');
  assert.equal(resolveSecret(values, 'Service:ProviderKeys:Red:OPENAI'), 'of-Red');
  assert.equal(resolveSecret(values, 'Service:ProviderKeys:a__b:openai'), 'of-a__b');
  assert.equal(resolveSecret(values, 'Service:WebhookSecrets:copy'), 'newer');
  for (const key of [
    'Service:ProviderKeys:Blue:openai',
    'Service:ProviderKeys:red:openai',
    'Service:ProviderKeys:a:b:openai',
    'Service__ProviderKeys__a__b__openai',
    'Service:WebhookSecrets:none',
  ])
    assert.equal(resolveSecret(values, key), null, key);
});

test('CONF-6 signing secrets hold up to three values while they rotate', () => {
  const yaml = 'Service:\n  WebhookSecrets: { crm: [new, old], acme: { erp: [a, b, c] } }\n';
  const env = {
    Service__TriggerSecrets__a__0: 'x',
    Service__TriggerSecrets__a__1: 'y',
    Service__TriggerSecrets__b: '["z"]',
    Service__TriggerSecrets__acme__c: 'w',
  };
  const { values } = load({ yaml, env });
  assert.deepEqual(resolveSecrets(values, 'Service:WebhookSecrets:crm'), ['new', 'old']);
  assert.deepEqual(resolveSecrets(values, 'Service:WebhookSecrets:acme:erp'), ['a', 'b', 'c']);
  assert.deepEqual(resolveSecrets(values, 'Service:TriggerSecrets:a'), ['x', 'y']);
  assert.deepEqual(resolveSecrets(values, 'Service:TriggerSecrets:b'), ['z']);
  assert.deepEqual(resolveSecrets(values, 'Service:TriggerSecrets:acme:c'), ['w']);
  assert.deepEqual(resolveSecrets(values, 'Service:TriggerSecrets:unknown'), []);
  const error = refuse({
    yaml: 'Service:\n  WebhookSecrets: { four: [a, b, c, d], number: 12345, "x:y": 1a, x: { y: 2b } }\n  ProviderKeys: { list: [a] }\n',
  });
  assert.deepEqual(
    error.problems.map(({ key, code }) => [key, code]),
    [
      ['Service:WebhookSecrets:four', 'invalid-value'],
      ['Service:WebhookSecrets:number', 'invalid-value'],
      ['Service:WebhookSecrets:x:y', 'conflict'],
      ['Service:ProviderKeys:list', 'invalid-value'],
    ],
  );
});

test('CONF-13 secrets are masked, also where another key takes its text from one', () => {
  const yaml = `
Host: { AuthToken: sk-token }
Service:
  ProviderKeys: { a: sk-provider, gone: "\${env:NOWHERE}" }
  WebhookSecrets: { hook: [sk-hook] }
  Providers: { OpenAI: { ApiKey: sk-openai, DefaultModel: "m-\${key:Service:ProviderKeys:a}" } }
`;
  const loaded = load({ yaml });
  for (const json of [true, false]) {
    const text = renderEffective(loaded, { json });
    assert.doesNotMatch(text, /sk-/);
    assert.match(text, /Service:ProviderKeys:a/);
  }
  const settings = JSON.parse(renderEffective(loaded, { json: true })).settings as {
    key: string;
    value: unknown;
    secret: boolean;
  }[];
  const shown = new Map(settings.map((setting) => [setting.key, setting]));
  for (const key of [
    'Host:AuthToken',
    'Service:ProviderKeys:a',
    'Service:WebhookSecrets:hook',
    'Service:Providers:OpenAI:ApiKey',
    'Service:Providers:OpenAI:DefaultModel',
  ])
    assert.deepEqual([shown.get(key)?.value, shown.get(key)?.secret], ['***', true], key);
  assert.equal(shown.get('Service:ProviderKeys:gone')?.value, null);
  assert.equal(shown.get('Service:Voice:ApiKey')?.value, null);
  assert.doesNotMatch(JSON.stringify(loaded.values.Service.ProviderKeys), /sk-/);
});

test('CONF-13 no message repeats a secret or the text of a reference', () => {
  const yaml = `
Host: { AuthToken: "sk secret 1" }
Service:
  Scheduling: { MaxAttempts: "\${env:SECRET}" }
  Providers: { OpenAI: { ApiKey: { nested: sk-secret-2 } } }
  McpSecrets: sk-secret-3
`;
  const error = refuse({
    yaml,
    env: {
      SECRET: 'sk-secret-4',
      Service__ProviderKeys: '{"a":"sk-secret-5"',
      Service__AtRest__Keys__k: 'sk-secret-6',
    },
  });
  assert.equal(error.problems.length, 6);
  assert.doesNotMatch(error.report() + JSON.stringify(error.problems), /sk.secret/);
});

test('CONF-13 a literal token in the file is accepted with a warning, a reference without', () => {
  assert.deepEqual(
    load({ yaml: 'Host: { AuthToken: literal }' }).warnings.map(({ key, source }) => [key, source]),
    [['Host:AuthToken', { kind: 'file', file: 'service.yaml', line: 1 }]],
  );
  assert.deepEqual(load({ yaml: 'Host: { AuthToken: "${env:T}" }', env: { T: 'x' } }).warnings, []);
  assert.deepEqual(load({ env: { Host__AuthToken: 'x' } }).warnings, []);
});

test('TOOL-38 other files use the same references, and know which text is secret', () => {
  using folder = new ConfigFolder();
  folder.write('hook', 'first');
  folder.write('note', 'from-note\n');
  const yaml = `
Service:
  ProviderKeys: { "acme:crm": "\${file:hook}", gone: "\${env:NOWHERE}" }
  Pricing: { Currency: "\${key:Service:ProviderKeys:acme:crm}", openai: { "m:1": { Input: 0.5 } } }
  Providers: { OpenAI: { ApiKey: sk-1 } }
`;
  const loaded = folder.load({ yaml });
  const resolve = (text: string) => resolveReferences(loaded, text, { env: { WHERE: 'eu' }, folder: folder.path });
  assert.deepEqual(resolve('plain $${env:X}'), { ok: true, text: 'plain ${env:X}', isSecret: false });
  assert.deepEqual(resolve('${env:WHERE}-${file:note}'), { ok: true, text: 'eu-from-note', isSecret: false });
  assert.deepEqual(resolve('${key:Service:Pricing:openai:m:1:Input}'), { ok: true, text: '0.5', isSecret: false });
  assert.deepEqual(resolve('${key:Service:Scheduling:PollInterval}'), { ok: true, text: '10s', isSecret: false });
  assert.deepEqual(resolve('${key:Service:Providers:OpenAI:ApiKey}'), { ok: true, text: 'sk-1', isSecret: true });
  assert.deepEqual(resolve('${key:service:pricing:currency}'), { ok: true, text: 'first', isSecret: true });
  folder.write('hook', 'second');
  assert.deepEqual(resolve('x${key:Service:ProviderKeys:acme:crm}'), { ok: true, text: 'xsecond', isSecret: true });
  for (const name of [
    'Service:ProviderKeys:gone',
    'Service:ProviderKeys:none',
    'Service:Nothing',
    'Service:Pricing',
    'Host:Url',
    'Service:Voice:Endpoint',
    'Service:Scheduling:Lanes',
  ])
    assert.equal(resolve(`\${key:${name}}`).ok, false, name);
});
