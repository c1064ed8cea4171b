import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { GuardInput, GuardVerdict } from '../../../src/engine/control/guards/content-guard.ts';
import { comparable } from '../../../src/features/guards/comparable-text.ts';
import { findPii, patternGuard } from '../../../src/features/guards/pattern-guard.ts';
import { piiKinds } from '../../../src/features/guards/pii-text.ts';
import { type Characters, TermAutomaton } from '../../../src/features/guards/term-automaton.ts';

const guard = patternGuard({
  deniedTerms: ['project zeus', '機密', 'Straße', 'ab', 'abc d'],
  maskedPii: [...piiKinds],
  maskReplacement: '[redacted]',
});

const inspect = (text: string): GuardVerdict => {
  const verdict = guard.inspect({ text } as GuardInput, new AbortController().signal);
  assert.ok(!(verdict instanceof Promise));
  return verdict;
};

/** `allow`, the denied term, or the masked text with its kinds. */
const told = (text: string): string => {
  const verdict = inspect(text);
  if (verdict.decision === 'Allow') return 'allow';
  return verdict.decision === 'Block' ? verdict.rule : `${verdict.text} <${verdict.rules.join(' ')}>`;
};

const assertTold = (cases: Readonly<Record<string, string>>): void => {
  for (const [text, expected] of Object.entries(cases)) assert.equal(told(text), expected, JSON.stringify(text));
};

test('GUARD-30 GUARD-31 denied terms match whole, in any case, width and spacing', () => {
  assertTold({
    'Tell me about Project  ZEUS.': 'denied-term:0',
    'project\n\tzeus': 'denied-term:0',
    'project zeusian': 'allow',
    '(project zeus)': 'denied-term:0',
    project_zeus: 'allow',
    'subproject zeus': 'allow',
    'project zeus2': 'allow',
    '社外 機密資料': 'denied-term:1',
    'die STRASSE': 'denied-term:2',
    'straße 5': 'denied-term:2',
    'xab abc d': 'denied-term:4',
    'abc d and ab': 'denied-term:3',
  });
});

test('GUARD-30 a term stays the same in other encodings', () => {
  assertTold({
    'ｐｒｏｊｅｃｔ　ｚｅｕｓ': 'denied-term:0',
    'pro\u200bject\u00a0ze\u00adus': 'denied-term:0',
    '\u202eproject\u2060 zeus': 'denied-term:0',
    '𝐩𝐫𝐨𝐣𝐞𝐜𝐭 𝓩𝓮𝓾𝓼': 'denied-term:0',
    'project zeus\u0336': 'denied-term:0',
    '{"a":"\\u0070roject\\nzeus"}': 'denied-term:0',
    '{"a":"{\\"b\\":\\"\\\\u0070roject zeus\\"}"}': 'denied-term:0',
    'pro\u0000ject\u0007 zeus': 'denied-term:0',
    'pro\u009fject zeus': 'denied-term:0',
    'pro\ufff9ject\u0085zeus': 'denied-term:0',
    '"\\u6a5f\\u5bc6"': 'denied-term:1',
    'C:\\new\\path': 'allow',
  });
});

test('GUARD-32 personal data is masked by kind', () => {
  assertTold({
    'Write to jo@example.com': 'Write to [redacted] <pii:Email>',
    'Card 4111 1111 1111 1111': 'Card [redacted] <pii:CreditCard>',
    'Order 4111 1111 1111 1112': 'allow',
    'IBAN DE89 3704 0044 0532 0130 00': 'IBAN [redacted] <pii:Iban>',
    'IBAN GB82WEST12345698765433': 'allow',
    'Call +44 20 7946 0958': 'Call [redacted] <pii:PhoneNumber>',
    'Host 192.0.2.7 is down': 'Host [redacted] is down <pii:IpAddress>',
    'Version 1.2.3': 'allow',
    'Version 1.2.3.4.5 and 300.1.1.1': 'allow',
    'From fe80::1 to ::ffff:192.0.2.1.': 'From [redacted] to [redacted]. <pii:IpAddress>',
    'std::vector at 10:20:30 ::': 'allow',
    'jo.smith+x@mail.example.co.uk, jo@localhost': '[redacted], jo@localhost <pii:Email>',
    'amex 378282246310005 or 4111-1111-1111-1111': 'amex [redacted] or [redacted] <pii:CreditCard>',
    'No 12 4111 1111 1111 1111!': 'No 12 [redacted]! <pii:CreditCard>',
    '94111111111111111 41111111111111112222': 'allow',
    '(030) 1234567 or 555-123-4567 or 0301234567': '[redacted] or [redacted] or [redacted] <pii:PhoneNumber>',
    '+1 (555) 123-4567 and 5551234567': '[redacted] and 5551234567 <pii:PhoneNumber>',
    'id 01931a2b-0000-7000-8000-000000000001': 'allow',
    'pi 0.123456789 on 2024-01-02T03:04:05': 'allow',
    'GB82WEST12345698765432 please': '[redacted] please <pii:Iban>',
    '4111 1111 1111 1111 jo@example.com 192.0.2.7':
      '[redacted] [redacted] [redacted] <pii:CreditCard pii:IpAddress pii:Email>',
  });
});

test('GUARD-32 personal data in other digits, widths and escapes is masked where it stands', () => {
  assertTold({
    '連絡先jo＠example.comまで': '連絡先[redacted]まで <pii:Email>',
    'jo@exam\u200bple.com!': '[redacted]! <pii:Email>',
    'jo@exam\u0001ple.com!': '[redacted]! <pii:Email>',
    '٤١١١ ١١١١ ١١١١ ١١١١': '[redacted] <pii:CreditCard>',
    '４１１１‑１１１１‑１１１１‑１１１１.': '[redacted]. <pii:CreditCard>',
    '{"to":"jo\\u0040example.com"}': '{"to":"[redacted]"} <pii:Email>',
    '{"to":"a\\njo@example.com\\n"}': '{"to":"a\\n[redacted]\\n"} <pii:Email>',
  });
});

test('GUARD-33 denied terms are looked for first; kinds that are not asked for stay', () => {
  assert.equal(told('project zeus: jo@example.com'), 'denied-term:0');
  const some = patternGuard({ deniedTerms: [], maskedPii: ['Email'], maskReplacement: '' });
  const text = '4111 1111 1111 1111 jo@example.com';
  assert.deepEqual(some.inspect({ text } as GuardInput, new AbortController().signal), {
    decision: 'Mask',
    text: '4111 1111 1111 1111 ',
    rules: ['pii:Email'],
  });
  const none = patternGuard({ deniedTerms: [], maskedPii: [], maskReplacement: '' });
  assert.deepEqual(none.inspect({ text } as GuardInput, new AbortController().signal), { decision: 'Allow' });
});

/** A text that counts how often it is looked at. */
class CountedText implements Characters {
  reads = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get length(): number {
    return this.#text.length;
  }

  charCodeAt(index: number): number {
    this.reads += 1;
    return this.#text.charCodeAt(index);
  }
}

/** Texts that send a naive search back again and again, as units that are repeated. */
const hostile: Readonly<Record<string, string>> = {
  'almost the term': 'a',
  'terms inside terms': 'ab',
  'single digits': '1 ',
  'groups of digits': '123-',
  'zeros that may be phones': '0-',
  'plus signs': '+1 ',
  dots: '1.',
  colons: 'a:',
  'at signs': 'a@',
  labels: '@b.',
  accounts: 'de89 ',
  'one account without an end': 'DE89A',
};

const mebibyte = 1_048_576;

test('GUARD-34 one MiB of hostile text is looked at in proportion to its length', () => {
  const automaton = new TermAutomaton([
    ...Array.from({ length: 200 }, (_, index) => `${'a'.repeat(index + 1)}b`),
    ...Array.from({ length: 100 }, (_, index) => `${'ab'.repeat(index + 1)}c`),
  ]);
  const readsOf = (unit: string, length: number): number => {
    const text = new CountedText(unit.repeat(Math.ceil(length / unit.length)).slice(0, length));
    automaton.find(text);
    findPii(text, piiKinds);
    return text.reads;
  };
  for (const [name, unit] of Object.entries(hostile)) {
    const small = readsOf(unit, mebibyte / 64);
    const large = readsOf(unit, mebibyte / 8);
    assert.ok(large <= small * 8 * 1.01 + 1000, `${name}: ${small} reads became ${large}`);
    assert.ok(large <= (mebibyte / 8) * 40, `${name}: ${(large * 8) / mebibyte} reads for a character`);
  }
  const whole = Object.values(hostile)
    .map((unit) => unit.repeat(Math.ceil(mebibyte / 12 / unit.length)))
    .join(' ');
  const text = new CountedText(whole);
  automaton.find(text);
  findPii(text, piiKinds);
  assert.ok(text.length >= mebibyte && text.reads <= text.length * 40, `${text.reads} reads of ${text.length}`);
});

test('GUARD-34 the automaton moves forward once for each character, whatever the terms', () => {
  const terms = Array.from({ length: 1000 }, (_, index) => `${'a'.repeat(255)}${String.fromCodePoint(0x100 + index)}`);
  const text = new CountedText('a'.repeat(mebibyte));
  assert.equal(new TermAutomaton(terms).find(text), -1);
  assert.equal(text.reads, mebibyte);
});

test('GUARD-34 long runs of combining marks are cut before they are put in order', () => {
  // Unicode normalization sorts the marks of one character by insertion: uncut, this text takes minutes.
  const marks = '\u0301\u0316'.repeat(mebibyte / 2);
  const halfWidth = '\uff9e\u0301'.repeat(mebibyte / 2);
  for (const text of [`${marks} project zeus`, `${halfWidth} project zeus`]) {
    assert.equal(told(text), 'denied-term:0');
    // Cut after 30 marks, no more than one run of them is sorted at a time.
    assert.ok(comparable(text).length <= text.length);
  }
});
