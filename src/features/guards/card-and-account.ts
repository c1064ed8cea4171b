import { type DigitRun, isDigit, isLetter, isWord, joins, type PiiClaims, type PiiPlaces } from './pii-text.ts';
import type { Characters } from './term-automaton.ts';

const fewestCardDigits = 13;
const mostCardDigits = 19;
// Cards are printed in groups of three to six digits. Smaller groups count only where the whole row of numbers is one
// card: otherwise every table of small numbers would have some.
const smallestCardGroup = 3;
const cardGaps = ' -';

/** The check of ISO/IEC 7812-1 (Luhn) over the digits of some runs. */
const isCard = (text: Characters, runs: readonly DigitRun[], from: number, to: number): boolean => {
  let sum = 0;
  let doubles = false;
  for (let index = to; index >= from; index -= 1) {
    const run = runs[index];
    if (run === undefined) return false;
    for (let at = run.end - 1; at >= run.start; at -= 1) {
      const value = text.charCodeAt(at) - 0x30;
      const twice = value * 2;
      sum += doubles ? (twice > 9 ? twice - 9 : twice) : value;
      doubles = !doubles;
    }
  }
  return sum % 10 === 0;
};

/** Cards inside one row of numbers, each from group to group. */
const cardsWithin = (text: Characters, runs: readonly DigitRun[], first: number, last: number, claims: PiiClaims) => {
  for (let from = first; from <= last; from += 1) {
    let digits = 0;
    let cardEnd = -1;
    for (let to = from; to <= last; to += 1) {
      const run = runs[to];
      if (run === undefined || run.end - run.start < smallestCardGroup) break;
      digits += run.end - run.start;
      if (digits > mostCardDigits) break;
      if (digits >= fewestCardDigits && isCard(text, runs, from, to)) cardEnd = to;
    }
    if (cardEnd < 0) continue;
    claims.claim('CreditCard', runs[from]?.start ?? 0, runs[cardEnd]?.end ?? 0);
    from = cardEnd;
  }
};

/** 13 to 19 digits with the check digit of a payment card, spaces and hyphens between. */
export const findCards = (text: Characters, { runs }: PiiPlaces, claims: PiiClaims): void => {
  for (let first = 0; first < runs.length; first += 1) {
    let last = first;
    let digits = 0;
    for (; ; last += 1) {
      const run = runs[last];
      if (run === undefined) break;
      digits += run.end - run.start;
      if (!joins(text, run, runs[last + 1], cardGaps)) break;
    }
    const fits = digits >= fewestCardDigits && digits <= mostCardDigits;
    if (fits && isCard(text, runs, first, last))
      claims.claim('CreditCard', runs[first]?.start ?? 0, runs[last]?.end ?? 0);
    else if (digits >= fewestCardDigits) cardsWithin(text, runs, first, last, claims);
    first = last;
  }
};

const shortestIban = 15;
const longestIban = 34;

/** The value of a digit or letter in ISO 7064: A is 10. */
const decimalOf = (unit: number): number => (isDigit(unit) ? unit - 0x30 : (unit | 0x20) - 0x57);

/** Where an account number ends that begins at `start`; -1: none does. The longest valid one counts. */
const ibanEnd = (text: Characters, start: number): number => {
  let length = 0;
  let head = 0;
  let rest = 0;
  let lastEnd = -1;
  for (let at = start; at < text.length && length < longestIban; at += 1) {
    const unit = text.charCodeAt(at);
    if (!isWord(unit)) {
      const joined = (unit === 0x20 || unit === 0x2d) && at + 1 < text.length && isWord(text.charCodeAt(at + 1));
      if (!joined) break;
      continue;
    }
    const value = decimalOf(unit);
    const shift = value > 9 ? 100 : 10;
    if (length < 4) head = head * shift + value;
    else rest = (rest * shift + value) % 97;
    length += 1;
    const isEnd = at + 1 >= text.length || !isWord(text.charCodeAt(at + 1));
    // The first four characters are checked as if they stood last: two letters and two digits are six decimals.
    if (isEnd && length >= shortestIban && (rest * 1_000_000 + head) % 97 === 1) lastEnd = at + 1;
  }
  return lastEnd;
};

/** Account numbers of ISO 13616 with valid check digits, spaces or hyphens between. */
export const findIbans = (text: Characters, { runs }: PiiPlaces, claims: PiiClaims): void => {
  for (const run of runs) {
    const start = run.start - 2;
    if (start < 0 || run.end - run.start < 2) continue;
    if (!isLetter(text.charCodeAt(start)) || !isLetter(text.charCodeAt(start + 1))) continue;
    if (start > 0 && isWord(text.charCodeAt(start - 1))) continue;
    const end = ibanEnd(text, start);
    if (end >= 0) claims.claim('Iban', start, end);
  }
};
