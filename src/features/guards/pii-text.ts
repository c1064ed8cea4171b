import type { Characters } from './term-automaton.ts';

export const piiKinds = ['CreditCard', 'Iban', 'IpAddress', 'Email', 'PhoneNumber'] as const;
export type PiiKind = (typeof piiKinds)[number];

export interface PiiMatch {
  readonly kind: PiiKind;
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

export const isDigit = (unit: number): boolean => unit >= 0x30 && unit <= 0x39;
export const isLetter = (unit: number): boolean => (unit >= 0x41 && unit <= 0x5a) || (unit >= 0x61 && unit <= 0x7a);
export const isWord = (unit: number): boolean => isDigit(unit) || isLetter(unit);

/** Digits without anything between them. */
export interface DigitRun {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Where personal data may be: one look at every unit of the text, and the kinds look around these places only. */
export interface PiiPlaces {
  readonly runs: readonly DigitRun[];
  readonly ats: readonly number[];
  readonly colons: readonly number[];
}

export const piiPlaces = (text: Characters): PiiPlaces => {
  const runs: DigitRun[] = [];
  const ats: number[] = [];
  const colons: number[] = [];
  let start = -1;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (isDigit(unit)) {
      if (start < 0) start = at;
      continue;
    }
    if (start >= 0) {
      runs.push({ start, end: at });
      start = -1;
    }
    if (unit === 0x40) ats.push(at);
    else if (unit === 0x3a) colons.push(at);
  }
  if (start >= 0) runs.push({ start, end: text.length });
  return { runs, ats, colons };
};

/** What the kinds have claimed so far; an earlier kind keeps what it has. */
export class PiiClaims {
  readonly matches: PiiMatch[] = [];
  readonly #length: number;
  #taken: Uint8Array | null = null;

  constructor(length: number) {
    this.#length = length;
  }

  isFree(start: number, end: number): boolean {
    const taken = this.#taken;
    if (taken === null) return true;
    for (let at = start; at < end; at += 1) if (taken[at] === 1) return false;
    return true;
  }

  /** False: another kind has part of it. */
  claim(kind: PiiKind, start: number, end: number): boolean {
    if (!this.isFree(start, end)) return false;
    this.#taken ??= new Uint8Array(this.#length);
    this.#taken.fill(1, start, end);
    this.matches.push({ kind, start, end });
    return true;
  }
}

// Between two groups of one number: " - " and ") (" are the longest that people write.
const longestGap = 3;

/** Whether two runs belong to one number, with only such units between them. */
export const joins = (text: Characters, from: DigitRun, to: DigitRun | undefined, units: string): boolean => {
  if (to === undefined || to.start - from.end > longestGap) return false;
  for (let at = from.end; at < to.start; at += 1)
    if (!units.includes(String.fromCharCode(text.charCodeAt(at)))) return false;
  return true;
};
