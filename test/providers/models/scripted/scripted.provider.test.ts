import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, test } from 'node:test';
import {
  createModelProviders,
  type ModelCall,
  type ModelPart,
  type ModelPrompt,
  type ModelProvider,
} from '../../../../src/providers/models/index.ts';
import {
  collect,
  failureOf,
  finishOf,
  modelCall,
  textOf,
  toolCallsOf,
} from '../../../support/providers/model-calls.ts';

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const scripted = (yaml: string): ModelProvider => {
  const folder = mkdtempSync(join(tmpdir(), 'script-'));
  folders.push(folder);
  const file = join(folder, 'script.yaml');
  writeFileSync(file, yaml);
  const provider = createModelProviders({ Scripted: { demo: { File: file } } }, { log: () => undefined }).get('demo');
  assert.ok(provider !== undefined);
  return provider;
};

const user = (text: string): ModelPrompt[number] => ({ role: 'user', content: [{ type: 'text', text }] });

const toolResult = (toolName: string, value: string): ModelPrompt[number] => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'call_1_0', toolName, output: { type: 'text', value } }],
});

const ask = (text: string, given: Partial<ModelCall> = {}): ModelCall => modelCall({ prompt: [user(text)], ...given });

describe('MODEL-37 a scripted provider', () => {
  test('is registered under its name and kind', () => {
    const provider = scripted('rules: [{ reply: { text: Hi } }]');
    assert.equal(provider.name, 'demo');
    assert.equal(provider.kind, 'scripted');
    assert.deepEqual(provider.catalog, []);
  });

  test('serves the sample of the quickstart', async () => {
    const provider = createModelProviders(
      { Scripted: { demo: { File: join(import.meta.dirname, '../../../../assets/samples/scripted-demo.yaml') } } },
      { log: () => undefined },
    ).get('demo');
    assert.ok(provider !== undefined);
    const question = user('What time is it in Vienna?');

    const first = await collect(provider.stream(modelCall({ prompt: [question] })));
    assert.deepEqual(toolCallsOf(first), [{ id: 'call_1_0', name: 'clock_now', input: { timeZone: 'Europe/Vienna' } }]);

    const second = await collect(
      provider.stream(modelCall({ prompt: [question, toolResult('clock_now', '12:34 in Vienna')], callNumber: 2 })),
    );
    assert.match(textOf(second), /12:34 in Vienna/);
    assert.ok(second.length > 5, 'streamed in small chunks');

    const other = await provider.generate(modelCall({ prompt: [user('Tell me a joke')] }));
    assert.match(textOf(other), /scripted/);
    assert.deepEqual(toolCallsOf(other), []);
  });
});

describe('MODEL-38 rules', () => {
  test('the first match wins, and a rule without conditions always matches', async () => {
    const provider = scripted(`
rules:
  - { when: { message: WEATHER }, reply: { text: first } }
  - { when: { message: weather }, reply: { text: second } }
  - { reply: { text: rest } }
`);
    assert.equal(textOf(await provider.generate(ask('the Weather?'))), 'first');
    assert.equal(textOf(await provider.generate(ask('something'))), 'rest');
  });

  test('all conditions of a rule must hold: message, tool, call, model', async () => {
    const provider = scripted(`
rules:
  - { when: { message: go, tool: t, call: 2, model: m }, reply: { text: all } }
  - { when: { call: 3 }, reply: { text: third } }
  - { when: { tool: t }, reply: { text: tool } }
  - { when: { model: other }, reply: { text: other } }
`);
    const after = { prompt: [user('go'), toolResult('t', 'x')] };
    assert.equal(textOf(await provider.generate(modelCall({ ...after, callNumber: 2, model: 'm' }))), 'all');
    assert.equal(textOf(await provider.generate(modelCall({ ...after, callNumber: 3, model: 'm' }))), 'third');
    assert.equal(textOf(await provider.generate(modelCall({ ...after, callNumber: 2, model: 'n' }))), 'tool');
    assert.equal(textOf(await provider.generate(ask('go', { model: 'other' }))), 'other');
    // An older result does not count as the last message.
    const { error } = await failureOf(
      provider.generate(modelCall({ prompt: [user('go'), toolResult('t', 'x'), user('and?')] })),
    );
    assert.equal(error.type, 'provider_error');
  });

  test('no rule that matches is provider_error', async () => {
    const provider = scripted('rules: [{ when: { message: x }, reply: { text: y } }]');
    for (const call of [provider.stream(ask('hello')), provider.generate(ask('hello'))]) {
      const { error } = await failureOf(call);
      assert.equal(error.type, 'provider_error');
      assert.equal(error.mayFallBack, false);
      assert.equal(error.message, 'Provider "demo" has no rule for this call in its script.');
    }
  });

  test('a global pattern matches every time', async () => {
    const provider = scripted('rules: [{ when: { message: /a/gy }, reply: { text: y } }]');
    for (let round = 0; round < 3; round += 1) assert.equal(textOf(await provider.generate(ask('a'))), 'y');
  });

  test('text is cut into chunks of whole characters', async () => {
    const provider = scripted('rules: [{ reply: { text: "ab🌍cd🌍e", chunkSize: 3 } }]');
    const parts = await collect(provider.stream(ask('x')));
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'text-delta' ? [part.text] : [])),
      ['ab🌍', 'cd🌍', 'e'],
    );
    assert.equal(textOf(await provider.generate(ask('x'))), 'ab🌍cd🌍e');
  });

  test('placeholders stand for groups and for the last tool result', async () => {
    const provider = scripted(`
rules:
  - when: { tool: t }
    reply: { text: "{{last}} / {{ last.place.name }} / {{last.missing}}" }
  - when: { message: '/from (?<from>\\w+) to (\\w+)/i' }
    reply:
      text: "{{0}} {{1}} {{2}} {{from}} [{{last}}]"
      toolCalls:
        - { name: route, arguments: { from: "{{from}}", stops: ["{{2}}", 3, null], quote: '{{from}}"' } }
`);
    const parts = await provider.generate(ask('From Graz to Linz please'));
    assert.equal(textOf(parts), 'From Graz to Linz Graz Linz Graz []');
    assert.deepEqual(toolCallsOf(parts)[0]?.input, { from: 'Graz', stops: ['Linz', 3, null], quote: 'Graz"' });

    const json = '{"place":{"name":"Enns"}}';
    const prompt = [user('from a to b'), toolResult('t', json)];
    assert.equal(textOf(await provider.generate(modelCall({ prompt }))), `${json} / Enns / `);
  });

  test('tool calls have ids made of the call and their index', async () => {
    const provider = scripted('rules: [{ reply: { toolCalls: [{ name: a }, { name: b, arguments: "{broken" }] } }]');
    const parts = await collect(provider.stream(ask('x', { callNumber: 4 })));
    assert.deepEqual(
      parts.flatMap((part) => (part.type === 'tool-call' ? [[part.toolCallId, part.toolName, part.input]] : [])),
      [
        ['call_4_0', 'a', '{}'],
        ['call_4_1', 'b', '{broken'],
      ],
    );
    assert.equal(finishOf(parts).finishReason, 'ToolCalls');
  });

  test('where tools may not be called, rules that call some are passed over', async () => {
    const provider = scripted('rules: [{ reply: { toolCalls: [{ name: a }] } }, { reply: { text: done } }]');
    assert.equal(textOf(await provider.generate(ask('x', { toolChoice: 'none' }))), 'done');
  });

  test('usage is given, estimated or not reported', async () => {
    const none = { cachedInputTokens: null, reasoningTokens: null, audioInputTokens: null, audioOutputTokens: null };
    const given = scripted(
      'rules: [{ reply: { text: x, usage: { inputTokens: 10, outputTokens: 4, cachedInputTokens: 6 } } }]',
    );
    assert.deepEqual(finishOf(await given.generate(ask('x'))).usage, {
      ...none,
      inputTokens: 10,
      outputTokens: 4,
      totalTokens: 14,
      cachedInputTokens: 6,
    });
    const estimated = scripted('rules: [{ reply: { text: 123456789 characters } }]');
    assert.deepEqual(finishOf(await estimated.generate(ask('12345678'))).usage, {
      ...none,
      inputTokens: 2,
      outputTokens: 5,
      totalTokens: 7,
    });
    const silent = scripted('rules: [{ reply: { text: x, usage: none } }]');
    assert.deepEqual(finishOf(await silent.generate(ask('x'))).usage, {
      ...none,
      inputTokens: null,
      outputTokens: null,
      totalTokens: null,
    });
  });

  test('an error ends the call, after the text that stands before it', async () => {
    const provider = scripted(`
rules:
  - { when: { message: quota }, reply: { error: { type: provider_rate_limited, retryAfter: 2s } } }
  - { when: { message: down }, reply: { text: "The answer", error: { type: provider_error, httpStatus: 503 } } }
  - { when: { message: bad }, reply: { error: { type: provider_error, httpStatus: 400 } } }
  - { reply: { error: content_filtered } }
`);
    const quota = (await failureOf(provider.stream(ask('quota')))).error;
    assert.deepEqual(
      [quota.type, quota.httpStatus, quota.retryAfterMs, quota.mayFallBack],
      ['provider_rate_limited', 429, 2000, true],
    );
    const down = await failureOf(provider.stream(ask('down')));
    assert.deepEqual([textOf(down.before), down.error.httpStatus, down.error.mayFallBack], ['The answer', 503, true]);
    assert.equal((await failureOf(provider.generate(ask('bad')))).error.mayFallBack, false);
    assert.equal((await failureOf(provider.generate(ask('x')))).error.type, 'content_filtered');
  });

  test('a stall and a delay end when the call is cancelled', async () => {
    const provider = scripted(`
rules:
  - { when: { message: stall }, reply: { text: Wait, stall: true } }
  - { when: { message: pause }, reply: { text: Wait, stall: 1h } }
  - { when: { message: slow }, reply: { text: Waiting, chunkSize: 4, delay: 1h } }
`);
    for (const message of ['stall', 'pause', 'slow']) {
      const controller = new AbortController();
      const before: ModelPart[] = [];
      const { error } = await failureOf(
        (async function* cancelAtFirst() {
          for await (const part of provider.stream(ask(message, { signal: controller.signal }))) {
            before.push(part);
            setImmediate(() => controller.abort());
            yield part;
          }
        })(),
      );
      assert.equal(error.type, 'canceled');
      assert.equal(textOf(before), 'Wait');
    }
    const { error } = await failureOf(provider.generate(ask('stall', { signal: AbortSignal.abort() })));
    assert.equal(error.type, 'canceled');
  });

  test('a pause that is over goes on', async () => {
    const provider = scripted('rules: [{ reply: { text: one two, chunkSize: 4, delay: 1ms, stall: 1ms } }]');
    const parts = await collect(provider.stream(ask('x')));
    assert.equal(textOf(parts), 'one two');
    assert.equal(finishOf(parts).finishReason, 'Stop');
  });

  test('MODEL-39 the same input gives the same output', async () => {
    const provider = scripted(
      'rules: [{ when: { message: /(.*)/s }, reply: { text: "{{1}}", chunkSize: 2, toolCalls: [{ name: a }] } }]',
    );
    const once = await collect(provider.stream(ask('again and again')));
    for (let round = 0; round < 3; round += 1)
      assert.deepEqual(await collect(provider.stream(ask('again and again'))), once);
  });
});
