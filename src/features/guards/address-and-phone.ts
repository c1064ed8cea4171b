import { isIPv6 } from 'node:net';
import { type DigitRun, isDigit, isLetter, isWord, joins, type PiiClaims, type PiiPlaces } from './pii-text.ts';
import type { Characters } from './term-automaton.ts';

const dot = 0x2e;
const hyphen = 0x2d;
const colon = 0x3a;

const at = (text: Characters, index: number): number =>
  index >= 0 && index < text.length ? text.charCodeAt(index) : 0;

const numberOf = (text: Characters, { start, end }: DigitRun): number => {
  let value = 0;
  for (let index = start; index < end; index += 1) value = value * 10 + text.charCodeAt(index) - 0x30;
  return value;
};

/** Four numbers up to 255 with one dot between. */
const isQuad = (text: Characters, runs: readonly DigitRun[], first: number): boolean => {
  for (let index = first; index < first + 4; index += 1) {
    const run = runs[index];
    if (run === undefined || run.end - run.start > 3 || numberOf(text, run) > 255) return false;
    if (index === first + 3) return true;
    if (at(text, run.end) !== dot || runs[index + 1]?.start !== run.end + 1) return false;
  }
  return false;
};

const findIpv4 = (text: Characters, runs: readonly DigitRun[], claims: PiiClaims): void => {
  for (let first = 0; first + 3 < runs.length; first += 1) {
    if (!isQuad(text, runs, first)) continue;
    const start = runs[first]?.start ?? 0;
    const end = runs[first + 3]?.end ?? 0;
    // With more numbers on either side it is something else, such as a version.
    const before = at(text, start - 1);
    if (isLetter(before) || (before === dot && isDigit(at(text, start - 2)))) continue;
    if (isLetter(at(text, end)) || (at(text, end) === dot && isDigit(at(text, end + 1)))) continue;
    claims.claim('IpAddress', start, end);
  }
};

const isHex = (unit: number): boolean =>
  isDigit(unit) || (unit >= 0x61 && unit <= 0x66) || (unit >= 0x41 && unit <= 0x46);
const isIpv6Unit = (unit: number): boolean => isHex(unit) || unit === colon || unit === dot;
const longestIpv6 = 45;

/** The range without the full stop of a sentence, or a colon before a port or a list. */
const trimmed = (text: Characters, from: number, to: number): DigitRun => {
  let start = from;
  let end = to;
  while (end > start && (at(text, end - 1) === dot || (at(text, end - 1) === colon && at(text, end - 2) !== colon)))
    end -= 1;
  while (start < end && at(text, start) === dot) start += 1;
  return { start, end };
};

const isIpv6At = (text: Characters, { start, end }: DigitRun): boolean => {
  if (end - start > longestIpv6 || isWord(at(text, start - 1)) || isWord(at(text, end))) return false;
  let address = '';
  for (let index = start; index < end; index += 1) address += String.fromCharCode(at(text, index));
  // Two colons alone are the unspecified address, and far more often an operator.
  return address !== '::' && isIPv6(address);
};

const findIpv6 = (text: Characters, colons: readonly number[], claims: PiiClaims): void => {
  let done = 0;
  for (const place of colons) {
    if (place < done) continue;
    let start = place;
    while (start > done && isIpv6Unit(at(text, start - 1))) start -= 1;
    let end = place;
    while (end < text.length && isIpv6Unit(at(text, end))) end += 1;
    done = end;
    const range = trimmed(text, start, end);
    if (isIpv6At(text, range)) claims.claim('IpAddress', range.start, range.end);
  }
};

export const findIpAddresses = (text: Characters, { runs, colons }: PiiPlaces, claims: PiiClaims): void => {
  // First, because they may end with an address of version 4.
  findIpv6(text, colons, claims);
  findIpv4(text, runs, claims);
};

/** Letters of alphabets whose addresses are written in them; what is beyond stands next to addresses without a space. */
const isMailLetter = (unit: number): boolean => isWord(unit) || (unit >= 0xc0 && unit <= 0x58f);
const isLocal = (unit: number): boolean =>
  isMailLetter(unit) || (unit !== 0 && '._%+-'.includes(String.fromCharCode(unit)));

/** Where the host name ends that begins at `start`: at least two labels, the last of letters; -1: there is none. */
const hostEnd = (text: Characters, start: number): number => {
  let labels = 0;
  let hostEndsAt = -1;
  for (let from = start; ; ) {
    let end = from;
    let letters = 0;
    while (end < text.length && (isMailLetter(at(text, end)) || at(text, end) === hyphen)) {
      if (!isDigit(at(text, end)) && at(text, end) !== hyphen) letters += 1;
      end += 1;
    }
    while (end > from && at(text, end - 1) === hyphen) end -= 1;
    if (end === from) return hostEndsAt;
    labels += 1;
    if (labels > 1 && letters > 0 && end - from > 1) hostEndsAt = end;
    if (at(text, end) !== dot) return hostEndsAt;
    from = end + 1;
  }
};

/** An expansion stops at the next `@` on either side, so no unit is looked at more than twice. */
export const findEmails = (text: Characters, { ats }: PiiPlaces, claims: PiiClaims): void => {
  for (const place of ats) {
    const end = hostEnd(text, place + 1);
    if (end < 0) continue;
    let start = place;
    while (start > 0 && isLocal(at(text, start - 1)) && claims.isFree(start - 1, start)) start -= 1;
    while (start < place && at(text, start) === dot) start += 1;
    if (start < place) claims.claim('Email', start, end);
  }
};

const phoneGaps = ' .-()';
const mostPhoneDigits = 15;

/** The last run of the longest number of `fewest` to 15 digits that begins with run `first`; -1: there is none. */
const lastRun = (text: Characters, runs: readonly DigitRun[], first: number, fewest: number): number => {
  let digits = 0;
  let last = -1;
  for (let index = first; ; index += 1) {
    const run = runs[index];
    if (run === undefined) return last;
    digits += run.end - run.start;
    if (digits > mostPhoneDigits) return last;
    if (digits >= fewest) last = index;
    if (!joins(text, run, runs[index + 1], phoneGaps)) return last;
  }
};

/** Part of a longer word or number, such as a date, an id or an amount. */
const isInside = (text: Characters, start: number): boolean => {
  const before = at(text, start - 1);
  if (isLetter(before)) return true;
  const earlier = at(text, start - 2);
  return before === hyphen || before === dot
    ? isWord(earlier)
    : '/:,'.includes(String.fromCharCode(before)) && isDigit(earlier);
};

const goesOn = (text: Characters, end: number): boolean =>
  isLetter(at(text, end)) || ((at(text, end) === hyphen || at(text, end) === dot) && isDigit(at(text, end + 1)));

interface PhoneStart {
  readonly start: number;
  readonly fewest: number;
  /** Without a sign of its own a number must stand alone. */
  readonly alone: boolean;
}

const phoneStart = (text: Characters, run: DigitRun): PhoneStart | null => {
  const before = at(text, run.start - 1);
  if (before === 0x2b) return { start: run.start - 1, fewest: 8, alone: false };
  if (before === 0x28) {
    if (at(text, run.start - 2) === 0x2b) return { start: run.start - 2, fewest: 8, alone: false };
    return { start: run.start - 1, fewest: 9, alone: false };
  }
  if (at(text, run.start) !== 0x30) return null;
  // A fraction, not an area code.
  if (run.end - run.start === 1 && at(text, run.end) === dot) return null;
  return { start: run.start, fewest: 9, alone: true };
};

const hasLength = (run: DigitRun | undefined, length: number): run is DigitRun =>
  run !== undefined && run.end - run.start === length;

const isThreeThreeFour = (text: Characters, runs: readonly DigitRun[], first: number): boolean => {
  const [area, exchange, line] = [runs[first], runs[first + 1], runs[first + 2]];
  if (!hasLength(area, 3) || !hasLength(exchange, 3) || !hasLength(line, 4)) return false;
  return joins(text, area, exchange, phoneGaps) && joins(text, exchange, line, phoneGaps);
};

/** `+` and 8 to 15 digits, a leading `0` or `(` and 9 to 15, or ten digits as 3-3-4. */
export const findPhones = (text: Characters, { runs }: PiiPlaces, claims: PiiClaims): void => {
  for (let first = 0; first < runs.length; first += 1) {
    const run = runs[first];
    if (run === undefined) return;
    const begin = phoneStart(text, run);
    let last = begin === null ? -1 : lastRun(text, runs, first, begin.fewest);
    let start = begin?.start ?? run.start;
    let end = runs[last]?.end ?? 0;
    if (begin?.alone === true && last >= 0 && (isInside(text, start) || goesOn(text, end))) last = -1;
    if (last < 0 && isThreeThreeFour(text, runs, first)) {
      last = first + 2;
      start = run.start;
      end = runs[last]?.end ?? 0;
    }
    if (last < 0) continue;
    if (claims.claim('PhoneNumber', start, end)) first = last;
  }
};
