import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigFolder, load, refuse } from './config-folder.ts';

const line = (yaml: string | Uint8Array): readonly [number, string] => {
  const [problem, ...others] = refuse({ yaml }).problems;
  assert.ok(problem?.source.kind === 'file', JSON.stringify([problem, ...others]));
  return [problem.source.line, problem.message];
};

test('CONF-14 mistakes in the notation have the line where they are', () => {
  const cases: Record<string, readonly [string, number, RegExp]> = {
    'repeated key': [
      'Host:\n  Url: http://localhost:1\n  Url: http://localhost:2\n',
      3,
      /"Url" is given twice here; the first time is on line 2/,
    ],
    'repeated key, CRLF': ['Host:\r\n  LogLevel: info\r\n  LogLevel: warn\r\n', 3, /line 2/],
    'tab as indentation': ['Host:\n\tUrl: x\n', 2, /tabs cannot indent/],
    'second document': ['Host: {}\n---\nService: {}\n', 2, /one YAML document/],
    'unknown tag': ['Host:\n  LogLevel: !secret info\n', 2, /tag is not known/],
    'other version': ['%YAML 1.1\n---\nService: { Drain: { Enabled: yes } }\n', 1, /YAML 1\.2/],
    'unresolved alias': ['Host:\n  Agents: *nope\n', 2, /no anchor/],
    'list as a name': ['Host:\n  ? [a]\n  : b\n', 2, /cannot be names/],
    'missing bracket': ['Host:\n  Agents: [a\nService: {}\n', 3, /missing|indentation/],
    'broken escape': ['Host:\n  LogLevel: "\\q"\n', 2, /escape/],
    'reserved character': ['Host:\n  LogLevel: @info\n', 2, /quotes/],
    'two colons': ['Host:\n  LogLevel: a: b\n', 2, /colon/],
    'list at the top': ['- Host\n', 1, /Service and Host at the top/],
    'text at the top': ['\n\nhello\n', 3, /Service and Host at the top/],
  };
  for (const [what, [yaml, expectedLine, message]] of Object.entries(cases)) {
    const [found, text] = line(yaml);
    assert.equal(found, expectedLine, what);
    assert.match(text, message, what);
  }
});

test('CONF-13 no message about the notation quotes the file', () => {
  for (const yaml of [
    'Host:\n  AuthToken: "sk-secret\n',
    'Host: { AuthToken: sk-secret',
    'Host:\n  AuthToken: sk-secret: x\n',
    'sk-secret',
    'Host:\n  AuthToken: !t sk-secret\n',
    'Host:\n AuthToken: *sk-secret\n',
  ])
    assert.doesNotMatch(refuse({ yaml }).report(), /sk-secret/, yaml);
});

test('CONF-2 a byte order mark, CRLF and an empty file are fine', () => {
  assert.equal(load({ yaml: '\ufeffHost:\r\n  LogLevel: warn\r\n' }).values.Host.LogLevel, 'warn');
  for (const yaml of ['', '\n', '# nothing\n', '---\n', 'null', '{}', 'Host:\nService:\n'])
    assert.equal(load({ yaml }).values.Host.LogLevel, 'info', JSON.stringify(yaml));
});

test('CONF-2 bytes that are not UTF-8 are found on their line', () => {
  assert.deepEqual(line(Buffer.from('Host:\n  LogLevel: info # caf\xe9\n', 'latin1'))[0], 2);
  assert.match(line(Buffer.from('\ufeffHost: {}', 'utf16le'))[1], /UTF-8/);
  assert.equal(load({ yaml: 'Service: { Pricing: { Currency: "€" } }' }).values.Service.Pricing.Currency, '€');
});

test('CONF-2 aliases work, but cannot multiply or contain themselves', () => {
  const shared =
    'Service:\n  Providers:\n    Compatible:\n      a: &a { Endpoint: "http://127.0.0.1:1" }\n      b: *a\n';
  assert.equal(load({ yaml: shared }).values.Service.Providers.Compatible['b']?.Endpoint, 'http://127.0.0.1:1');
  const bomb = [
    'a: &a [x, x, x, x, x, x, x, x, x, x]',
    ...[...'bcdefghi'].map(
      (name, index) => `${name}: &${name} [${Array(10).fill(`*${'abcdefgh'[index]}`).join(', ')}]`,
    ),
  ];
  assert.match(line(bomb.join('\n'))[1], /aliases/);
  assert.match(line('Host: &a { Agents: [*a] }')[1], /aliases/);
  assert.match(
    refuse({ yaml: 'Host: &h { LogLevel: info }\nService:\n  <<: *h\n' }).report(),
    /Service:<< .*\n.*does not exist/,
  );
});

test('CONF-2 deep nesting, many names and large files end in one clear problem', () => {
  assert.match(line(`Host: ${'['.repeat(5000)}${']'.repeat(5000)}`)[1], /nested|levels/);
  assert.match(line(`Host: ${'['.repeat(40)}${']'.repeat(40)}`)[1], /levels/);
  assert.match(
    line(Array.from({ length: 21_000 }, (_, index) => `k${index}: 1`).join('\n'))[1],
    /more than 20000 values/,
  );
  assert.match(line(`# ${'x'.repeat(600_000)}`)[1], /larger than/);
  assert.ok(refuse({ yaml: '}\n'.repeat(1000) }).problems.length <= 20);
});

test('CONF-15 names that mean something to JavaScript are only names', () => {
  const yaml =
    'Service:\n  ProviderKeys: { __proto__: a, constructor: b }\n  Pricing: { __proto__: { toString: { Input: 1 } } }\n';
  const { values } = load({ yaml, env: { Service__ProviderKeys__hasOwnProperty: 'c' } });
  assert.deepEqual(values.Service.ProviderKeys.toJSON(), ['__proto__', 'constructor', 'hasOwnProperty']);
  assert.deepEqual(Object.keys(values.Service.Pricing.Models), ['__proto__']);
  assert.equal(Object.getPrototypeOf(values.Service.Pricing.Models), Object.prototype);
  const error = refuse({
    yaml: 'Service: { __proto__: 1, constructor: 2, toString: 3 }',
    args: ['__proto__:x=1', 'Host:constructor:name=1'],
  });
  assert.equal(error.problems.length, 5);
  assert.equal(
    error.problems.every(({ code }) => code === 'unknown-key'),
    true,
  );
});

test('CONF-6 hostile JSON in a variable is one clear problem', () => {
  for (const value of [
    `${'['.repeat(200_000)}`,
    '[1,',
    '{"a":',
    '[\u0000]',
    `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  ]) {
    const { problems } = refuse({ env: { Host__Agents: value } });
    assert.equal(problems.length, 1);
    assert.equal(problems[0]?.key?.startsWith('Host:Agents'), true);
    assert.ok((problems[0]?.message.length ?? 0) < 300);
  }
});

test('CONF-14 control characters of a value are escaped in the report', () => {
  const report = refuse({ env: { Host__LogLevel: '\u001b[31mred\n' } }).report();
  assert.match(report, /found "\\u001b\[31mred\\n"/);
  const key = refuse({ args: ['Host:\u001b[31mX=1'] }).report();
  assert.equal(key.includes('\u001b'), false);
});

test('CONF-2 a folder of its own is left as it was', () => {
  using folder = new ConfigFolder();
  folder.load({ yaml: 'Service: { Persistence: { Sqlite: { ConnectionString: data/x.db } } }' });
  folder.refuse({ args: ['Host:LogLevel=x'] });
});
