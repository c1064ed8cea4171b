import { closest, distance } from 'fastest-levenshtein';

// More is no typo any more, and a comparison takes as long as both names together.
const maxTypoLength = 40;
const maxTypoDistance = 3;

/** The known name that a wrong one most likely means, in any case; null: none is near enough. */
export const nearestName = (name: string, known: readonly string[]): string | null => {
  if (name.length > maxTypoLength || known.length === 0) return null;
  const byLowerCase = new Map(known.map((one) => [one.toLowerCase(), one]));
  const wanted = name.toLowerCase();
  const nearest = closest(wanted, [...byLowerCase.keys()]);
  // Of a short name nearly every other one is that near.
  const most = Math.min(maxTypoDistance, Math.ceil(Math.max(wanted.length, nearest.length) / 2));
  return distance(wanted, nearest) <= most ? (byLowerCase.get(nearest) ?? null) : null;
};
