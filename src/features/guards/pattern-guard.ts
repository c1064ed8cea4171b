import type { ContentGuard, GuardVerdict } from '../../engine/control/index.ts';
import { findEmails, findIpAddresses, findPhones } from './address-and-phone.ts';
import { findCards, findIbans } from './card-and-account.ts';
import { comparable } from './comparable-text.ts';
import { PiiClaims, type PiiKind, type PiiMatch, type PiiPlaces, piiKinds, piiPlaces } from './pii-text.ts';
import { type PlainView, plainView, withoutEscapes } from './plain-view.ts';
import { type Characters, TermAutomaton } from './term-automaton.ts';

const patternGuardName = 'pattern';

export interface PatternSettings {
  readonly deniedTerms: readonly string[];
  readonly maskedPii: readonly PiiKind[];
  readonly maskReplacement: string;
}

// JSON inside a text says the same with other characters, and whoever reads it decodes them: a result that is JSON, with
// JSON in one of its texts, which a third program has quoted once more.
const deepestEscapes = 3;

type Finder = (text: Characters, places: PiiPlaces, claims: PiiClaims) => void;

const finders: Readonly<Record<PiiKind, Finder>> = {
  CreditCard: findCards,
  Iban: findIbans,
  IpAddress: findIpAddresses,
  Email: findEmails,
  PhoneNumber: findPhones,
};

/** Personal data of these kinds, in the order in which the kinds claim text. Linear in the text. */
export const findPii = (text: Characters, kinds: readonly PiiKind[]): readonly PiiMatch[] => {
  const claims = new PiiClaims(text.length);
  const places = piiPlaces(text);
  if (places.runs.length === 0 && places.ats.length === 0 && places.colons.length === 0) return [];
  for (const kind of piiKinds) if (kinds.includes(kind)) finders[kind](text, places, claims);
  return claims.matches;
};

const masked = (text: string, view: PlainView, matches: readonly PiiMatch[], replacement: string): string => {
  const { offsets } = view;
  const place = (index: number): number => (offsets === null ? index : (offsets[index] ?? text.length));
  let result = '';
  let from = 0;
  for (const { start, end } of [...matches].sort((a, b) => a.start - b.start)) {
    result += text.slice(from, place(start)) + replacement;
    from = place(end);
  }
  return result + text.slice(from);
};

/** Terms that block, and kinds of personal data that are masked. With neither it allows everything. Design: docs/design/guards.md. */
export const patternGuard = ({ deniedTerms, maskedPii, maskReplacement }: PatternSettings): ContentGuard => {
  const automaton =
    deniedTerms.length === 0 ? null : new TermAutomaton(deniedTerms.map((term) => comparable(term).trim()));

  const deniedTerm = (text: string): number => {
    if (automaton === null) return -1;
    let shown = text;
    for (let layer = 0; ; layer += 1) {
      const term = automaton.find(comparable(shown));
      if (term >= 0 || layer === deepestEscapes || !shown.includes('\\')) return term;
      shown = withoutEscapes(shown);
    }
  };

  const withoutPii = (text: string, rules: Set<string>): string => {
    // Decoded, or the letter of an escape would count as part of what follows it.
    const view = plainView(text, text.includes('\\'));
    const matches = findPii(view.text, maskedPii);
    for (const { kind } of matches) rules.add(`pii:${kind}`);
    return matches.length === 0 ? text : masked(text, view, matches, maskReplacement);
  };

  return {
    name: patternGuardName,
    inspect({ text }): GuardVerdict {
      const term = deniedTerm(text);
      if (term >= 0) return { decision: 'Block', rule: `denied-term:${term}` };
      if (maskedPii.length === 0) return { decision: 'Allow' };
      const rules = new Set<string>();
      const result = withoutPii(text, rules);
      return rules.size === 0 ? { decision: 'Allow' } : { decision: 'Mask', text: result, rules: [...rules] };
    },
  };
};
