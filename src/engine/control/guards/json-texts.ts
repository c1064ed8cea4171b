import type { Json } from '../../../contract/schema.ts';

/** Gives a text as it may be kept; what throws ends the walk. */
export type TextCheck = (text: string) => Promise<string>;

// Deeper JSON is refused as arguments and as an answer anyway.
const deepest = 256;

/** A card number as a number is as long as this at least; shorter ones say nothing that a guard could know. */
const shortestNumber = 9;

interface Member {
  /** Null: an entry of a list, or the whole. */
  readonly name: string | null;
  readonly value: Json;
  readonly depth: number;
}

const membersOf = (value: Json, depth: number): Member[] => {
  if (Array.isArray(value)) return value.map((entry) => ({ name: null, value: entry, depth }));
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).map(([name, entry]) => ({ name, value: entry, depth }));
};

const ownText = (value: Json): string | null => {
  if (typeof value === 'string') return value;
  return typeof value === 'number' && String(value).length >= shortestNumber ? String(value) : null;
};

/** Every text of a value once, in its order: strings, names of members that nobody declared, and long numbers. */
const textsOf = (value: Json, declared: ReadonlySet<string>): Set<string> | null => {
  const texts = new Set<string>();
  const open: Member[] = [{ name: null, value, depth: 0 }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (next.depth > deepest) return null;
    if (next.name !== null && !declared.has(next.name)) texts.add(next.name);
    const text = ownText(next.value);
    if (text !== null) texts.add(text);
    // Last in, first out.
    for (const member of membersOf(next.value, next.depth + 1).reverse()) open.push(member);
  }
  texts.delete('');
  return texts;
};

const replaced = (value: Json, texts: ReadonlyMap<string, string>): Json => {
  if (typeof value === 'string') return texts.get(value) ?? value;
  if (typeof value === 'number') return texts.get(String(value)) ?? value;
  if (Array.isArray(value)) return value.map((entry) => replaced(entry, texts));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, entry]) => [texts.get(name) ?? name, replaced(entry, texts)]),
  );
};

/**
 * The value with every text as the check leaves it; the same object when nothing changed, null when it is too deep.
 * `declared`: names of members that the tool declares, which no model has made up.
 */
export const checkedJson = async (
  value: Json,
  declared: ReadonlySet<string>,
  check: TextCheck,
): Promise<{ readonly value: Json } | null> => {
  const texts = textsOf(value, declared);
  if (texts === null) return null;
  const changed = new Map<string, string>();
  for (const text of texts) {
    const checkedText = await check(text);
    if (checkedText !== text) changed.set(text, checkedText);
  }
  return { value: changed.size === 0 ? value : replaced(value, changed) };
};
