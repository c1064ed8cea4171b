import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChatReasoning } from '../../../../src/providers/models/chat-completions/chat-reasoning.ts';

/** What goes back of an answer that came in these pieces: its text and its details. */
const returned = (...pieces: Parameters<ChatReasoning['add']>[0][]) => {
  const reasoning = new ChatReasoning();
  for (const piece of pieces) reasoning.add(piece);
  const part = reasoning.part({ reasoningReplay: 'Auto' }, 'local', true);
  assert.ok(part?.type === 'reasoning-end');
  const kept = part.providerMetadata?.['compatible']?.['reasoning'] as { readonly details?: unknown } | undefined;
  return { text: part.text, details: kept?.details };
};

const text = (value: string, more: object) => ({ type: 'reasoning.text', text: value, ...more });
const pieces = (...details: object[]) => details.map((detail) => ({ reasoning_details: [detail] }));

test('MODEL-6 pieces of reasoning_details continue their own block alone', () => {
  const { details } = returned(
    ...pieces(
      text('One', { index: 0 }),
      text(' two', { index: 0 }),
      text('Other', { index: 1 }),
      text(' one', { index: 1, signature: 'sig-1' }),
      text('Third', { index: 1 }),
      { type: 'reasoning.summary', summary: 'In', index: 1 },
      { type: 'reasoning.summary', summary: ' short', index: 1, id: null },
      { type: 'reasoning.encrypted', data: 'a', index: 1 },
      { type: 'reasoning.encrypted', data: 'b', index: 1 },
    ),
  );
  assert.deepEqual(details, [
    text('One two', { index: 0 }),
    text('Other one', { index: 1, signature: 'sig-1' }),
    text('Third', { index: 1 }),
    { type: 'reasoning.summary', summary: 'In short', index: 1 },
    { type: 'reasoning.encrypted', data: 'a', index: 1 },
    { type: 'reasoning.encrypted', data: 'b', index: 1 },
  ]);
});

test('MODEL-6 reasoning that comes under two names goes back once', () => {
  const both = (value: string) => ({ reasoning_content: value, reasoning: value });
  assert.equal(returned(both('I should'), both(' look.')).text, 'I should look.');
});
