import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anthropicFinish } from '../../../src/providers/models/finish-reasons.ts';
import { LibraryParts } from '../../../src/providers/models/library-parts.ts';
import { anthropicUsage } from '../../../src/providers/models/model-usage.ts';
import { answerForm, StreamTail } from '../../../src/providers/models/transport/answer-form.ts';

test('MODEL-6 the first byte of an answer shows its form, behind blanks and a byte order mark', () => {
  for (const asked of ['events', 'document'] as const) {
    for (const blank of ['', ' \r\n\t', '\uFEFF', '\uFEFF ']) {
      const formOf = (text: string) => answerForm(Buffer.from(blank + text), asked);
      assert.deepEqual([formOf('{"a":1}'), formOf('[{}]')], ['document', 'document']);
      for (const line of ['data: {}', 'event: a', 'id: 1', 'retry: 1', ': hello']) assert.equal(formOf(line), 'events');
      assert.equal(formOf('<html>'), asked);
    }
    assert.equal(answerForm(Buffer.from('\uFEFF \n'), asked), null);
  }
});

test('MODEL-14 [DONE] closes a stream as its last line, wherever its bytes are cut', () => {
  for (const [text, isDone] of [
    ['data: {}\n\ndata: [DONE]\n\n', true],
    ['data:[DONE]', true],
    [`data: {"a":"${'x'.repeat(100)}"}\n\ndata: [DONE]\r\n\r\n`, true],
    ['data: {}\n\ndata: [DONE]\n\ndata: {}\n\n', false],
    ['data: {"a":"data: [DONE]"}\n\n', false],
  ] as const)
    for (let cut = 0; cut <= text.length; cut += 1) {
      const tail = new StreamTail();
      for (const part of [text.slice(0, cut), text.slice(cut)]) tail.add(Buffer.from(part));
      assert.equal(tail.saysDone, isDone, `${text} cut at ${cut}`);
    }
});

test('MODEL-14 half a call is no answer, whatever the provider says of its end', () => {
  const open = () => {
    const scope = { provider: 'anthropic', requestId: 'req-1', secret: null, saidDone: true };
    const parts = new LibraryParts(scope, { kind: 'anthropic', usage: anthropicUsage, finishReasons: anthropicFinish });
    parts.read({ type: 'text-delta', id: '1', delta: 'Let me look.' });
    parts.read({ type: 'tool-input-start', id: 'c1', toolName: 'look' });
    return parts;
  };
  const none = { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined };
  const finish = {
    type: 'finish',
    finishReason: { unified: 'other', raw: undefined },
    usage: { inputTokens: none, outputTokens: { total: undefined, text: undefined, reasoning: undefined } },
  } as const;
  assert.throws(() => open().read(finish), /broke off/);
  const whole = open();
  whole.read({ type: 'tool-input-end', id: 'c1' });
  assert.equal(whole.read(finish)?.type, 'finish');
});
