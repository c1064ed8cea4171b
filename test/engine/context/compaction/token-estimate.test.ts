import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { textTokens } from '../../../../src/engine/context/compaction/token-estimate.ts';

const root = join(import.meta.dirname, '../../../..');
const file = (name: string): string => readFileSync(join(root, name), 'utf8').slice(0, 60_000);

const samples = {
  documentation: file('docs/agents.md'),
  code: file('src/engine/lifecycle/run-engine.ts'),
  'indented JSON': file('docs/reference/openapi.json'),
  'packed JSON': JSON.stringify(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))),
  'German prose': 'Die Verhandlung über den neuen Haushalt dauert an, und niemand weiß, wann sie zu Ende geht. '.repeat(
    20,
  ),
  Chinese: '今天天气很好，我们去公园散步吧。中文分词是一个有趣的问题。'.repeat(20),
  Japanese: 'これは日本語の文章です。トークン数を数えます。'.repeat(20),
  Russian: 'Сегодня хорошая погода, мы идём гулять в парк и разговариваем о программировании. '.repeat(20),
  numbers: Array.from({ length: 500 }, (_, index) => String(index * 7919)).join(', '),
};

for (const [name, text] of Object.entries(samples))
  test(`AGENT-36 the quick count of tokens is near the vocabulary's: ${name}`, () => {
    const ratio = textTokens(text) / countTokens(text);
    assert.ok(ratio > 0.75 && ratio < 1.35, `${ratio}`);
  });

test('AGENT-36 the quick count is linear: a text without a break is no trap', () => {
  assert.ok(textTokens('a'.repeat(2_000_000)) > 100_000);
  assert.equal(textTokens(''), 0);
});
