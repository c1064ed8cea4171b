import { setImmediate as nextTurn } from 'node:timers/promises';

// Counting a run of letters, spaces or signs without a break takes quadratic time: 50,000 characters take seconds.
// Prose has hardly any run this long, so cutting here costs no precision where it matters.
const unbroken = /[\p{L}\p{M}]{64}|\s{64}|[^\s\p{L}\p{N}]{64}/gu;
// About 3 ms of work; the event loop gets its turn in between.
const charactersPerTurn = 65_536;

const nothingSpecial = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

function* turns(text: string): Generator<string> {
  for (let start = 0; start < text.length; start += charactersPerTurn)
    yield text.slice(start, start + charactersPerTurn);
}

function* pieces(text: string): Generator<string> {
  let start = 0;
  for (const { index, 0: run } of text.matchAll(unbroken)) {
    yield text.slice(start, index + run.length);
    start = index + run.length;
  }
  yield text.slice(start);
}

/**
 * Tokens of the texts together by the fixed vocabulary o200k_base, whatever the model: an approximation, never a
 * provider's own count. The vocabulary is loaded on first use (a quarter of a second, some 100 MB).
 */
export const estimateTokens = async (texts: readonly string[]): Promise<number> => {
  const { countTokens } = await import('gpt-tokenizer/encoding/o200k_base');
  let tokens = 0;
  let sinceTurn = 0;
  for (const text of texts) {
    for (const part of turns(text)) {
      if (sinceTurn + part.length > charactersPerTurn) {
        await nextTurn();
        sinceTurn = 0;
      }
      sinceTurn += part.length;
      for (const piece of pieces(part)) tokens += countTokens(piece, nothingSpecial);
    }
  }
  return tokens;
};
