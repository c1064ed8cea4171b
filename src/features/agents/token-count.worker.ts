import { parentPort } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';

/** Texts of one question; the answer repeats its id. */
export interface CountRequest {
  readonly id: number;
  readonly texts: readonly string[];
}

export interface CountAnswer {
  readonly id: number;
  readonly tokens: number;
}

// Counting a run of letters, spaces or signs without a break takes quadratic time: 50,000 characters take seconds.
// Prose has hardly any run this long, so cutting here costs no precision where it matters.
const unbroken = /[\p{L}\p{M}]{64}|\s{64}|[^\s\p{L}\p{N}]{64}/gu;

const nothingSpecial = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };

const pieces = function* (text: string): Generator<string> {
  let start = 0;
  for (const { index, 0: run } of text.matchAll(unbroken)) {
    yield text.slice(start, index + run.length);
    start = index + run.length;
  }
  yield text.slice(start);
};

const count = (texts: readonly string[]): number => {
  let tokens = 0;
  for (const text of texts) for (const piece of pieces(text)) tokens += countTokens(piece, nothingSpecial);
  return tokens;
};

parentPort?.on('message', ({ id, texts }: CountRequest) => {
  parentPort?.postMessage({ id, tokens: count(texts) } satisfies CountAnswer);
});
