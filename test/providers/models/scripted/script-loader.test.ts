import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createModelProviders, loadScript, ScriptError } from '../../../../src/providers/models/index.ts';
import { parseScript } from '../../../../src/providers/models/scripted/script-loader.ts';

const problemsOf = (load: () => unknown): string[] => {
  try {
    load();
  } catch (error) {
    assert.ok(error instanceof ScriptError);
    return error.message.split('\n');
  }
  return assert.fail('the script was accepted');
};

describe('MODEL-39 a bad script stops the start', () => {
  test('with file, line and field of every problem', () => {
    const yaml = `rules:
  - when: { message: /(/, tools: clock, call: 0 }
    reply:
      text: 5
      delay: 15
      chunkSize: none
      pace: slow
  - when:
      message: /from (?<town>.*)/
    reply:
      text: "{{town}} {{1}} {{2}} {{city}}"
      toolCalls:
        - arguments: { a: "{{nobody}}" }
        - { name: x, arguments: [1] }
      usage: { inputTokens: -1, tokens: 4 }
      error: { type: out_of_luck, httpStatus: 200 }
  - when: { message: x }
  - reply: {}
  - reply: { error: canceled, stall: forever }
  - 7
`;
    assert.deepEqual(
      problemsOf(() => parseScript(yaml, 'demo.yaml')),
      [
        'demo.yaml:2 rules[0].when.tools: is unknown; known here: message, tool, call, model',
        'demo.yaml:2 rules[0].when.message: is no regular expression (Invalid regular expression: /(/: Unterminated group)',
        'demo.yaml:2 rules[0].when.call: must be a whole number from 1',
        'demo.yaml:4 rules[0].reply.text: must be a text',
        'demo.yaml:5 rules[0].reply.delay: must be a duration such as 50ms, 2s or 1m',
        'demo.yaml:6 rules[0].reply.chunkSize: must be a whole number from 1',
        'demo.yaml:7 rules[0].reply.pace: is unknown; known here: text, chunkSize, delay, toolCalls, usage, error, stall',
        'demo.yaml:11 rules[1].reply.text: has {{2}}, which is neither "last" nor a group of when.message',
        'demo.yaml:11 rules[1].reply.text: has {{city}}, which is neither "last" nor a group of when.message',
        'demo.yaml:13 rules[1].reply.toolCalls[0].arguments: has {{nobody}}, which is neither "last" nor a group of when.message',
        'demo.yaml:13 rules[1].reply.toolCalls[0].name: is missing',
        'demo.yaml:14 rules[1].reply.toolCalls[1].arguments: must be a mapping, or a text to be sent as it is',
        'demo.yaml:15 rules[1].reply.usage.tokens: is unknown; known here: inputTokens, outputTokens, totalTokens, cachedInputTokens, reasoningTokens, audioInputTokens, audioOutputTokens',
        'demo.yaml:15 rules[1].reply.usage.inputTokens: must be a whole number from 0',
        'demo.yaml:16 rules[1].reply.error.httpStatus: must be a whole number from 400',
        'demo.yaml:16 rules[1].reply.error.type: must be one of circuit_open, provider_unavailable, provider_error, provider_timeout, provider_rate_limited, context_overflow, provider_not_allowed, content_filtered, provider_credential_unresolved',
        'demo.yaml:17 rules[2].reply: is missing',
        'demo.yaml:18 rules[3].reply: must have text, toolCalls, error or stall',
        'demo.yaml:19 rules[4].reply.stall: must be a duration such as 50ms, 2s or 1m',
        'demo.yaml:19 rules[4].reply.error: must be one of circuit_open, provider_unavailable, provider_error, provider_timeout, provider_rate_limited, context_overflow, provider_not_allowed, content_filtered, provider_credential_unresolved',
        'demo.yaml:20 rules[5]: must be a mapping',
      ],
    );
  });

  test('and with the place of a mistake in the YAML itself', () => {
    assert.match(
      problemsOf(() => parseScript('rules:\n  - reply: { text: "x }\n', 'demo.yaml'))[0] ?? '',
      /^demo\.yaml:\d: /,
    );
    assert.match(
      problemsOf(() => parseScript('rules: [{ reply: { text: a, text: b } }]', 'demo.yaml'))[0] ?? '',
      /^demo\.yaml:1: /,
    );
    assert.deepEqual(
      problemsOf(() => parseScript('', 'demo.yaml')),
      ['demo.yaml: must be a mapping'],
    );
    assert.deepEqual(
      problemsOf(() => parseScript('- 1', 'demo.yaml')),
      ['demo.yaml:1 [0]: must be a mapping'],
    );
    assert.deepEqual(
      problemsOf(() => parseScript('7', 'demo.yaml')),
      ['demo.yaml:1: must be a mapping'],
    );
    assert.deepEqual(
      problemsOf(() => parseScript('[]', 'demo.yaml')),
      ['demo.yaml:1: must have at least one rule'],
    );
    assert.deepEqual(
      problemsOf(() => parseScript('- reply: { text: x }\n- reply: {}', 'demo.yaml')),
      ['demo.yaml:2 [1].reply: must have text, toolCalls, error or stall'],
    );
    assert.deepEqual(
      problemsOf(() => parseScript('rules: []', 'demo.yaml')),
      ['demo.yaml:1 rules: must have at least one rule'],
    );
    assert.deepEqual(problemsOf(() => parseScript('rules:', 'demo.yaml'))[0], 'demo.yaml:1 rules: has no value');
    assert.match(
      problemsOf(() => parseScript('a: 1\nrules: [{reply: {text: x}}]', 'demo.yaml'))[0] ?? '',
      /^demo\.yaml:1 a: is unknown/,
    );
  });

  test('a file that cannot be read is named', () => {
    assert.deepEqual(
      problemsOf(() => loadScript('/nowhere/script.yaml')),
      ['/nowhere/script.yaml: cannot be read (ENOENT)'],
    );
    const load = () =>
      createModelProviders({ Scripted: { demo: { File: '/nowhere/s.yaml' } } }, { log: () => undefined });
    assert.throws(load, ScriptError);
    assert.match(
      problemsOf(() => createModelProviders({ Scripted: { demo: {} } }, { log: () => undefined }))[0] ?? '',
      /Scripted:demo:File/,
    );
  });

  test('MODEL-38 the rules may be the whole file', () => {
    const rules = '- when: { call: 2 }\n  reply: { text: again }\n- reply: { text: x }\n';
    const indented = rules.replaceAll(/^/gm, '  ').trimEnd();
    assert.deepEqual(parseScript(rules, 'demo.yaml'), parseScript(`rules:\n${indented}\n`, 'demo.yaml'));
    assert.equal(parseScript(rules, 'demo.yaml').rules.length, 2);
  });

  test('anchors may be used', () => {
    const script = parseScript(
      'rules:\n  - { when: { message: a }, reply: &r { text: x } }\n  - { reply: *r }\n',
      'demo.yaml',
    );
    assert.deepEqual(
      script.rules.map((rule) => rule.reply.text),
      ['x', 'x'],
    );
  });
});
