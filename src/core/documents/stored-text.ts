const nul = '\0';
const replacement = '\uFFFD';

/**
 * A text as every store holds it: PostgreSQL takes no U+0000, so U+FFFD takes its place on all of them. Half a surrogate
 * pair becomes U+FFFD as well, when a driver encodes the text as UTF-8. JSON escapes both, and keeps them.
 */
export const storedText = (text: string): string => (text.includes(nul) ? text.replaceAll(nul, replacement) : text);

const isStorable = (text: string): boolean => !text.includes(nul) && text.isWellFormed();

/** Goes through a list in place of recursion: callers in this process may nest a value as deep as they like. */
const holdsOnlyStorable = (whole: unknown): boolean => {
  const left: unknown[] = [whole];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value === 'string' && !isStorable(value)) return false;
    if (typeof value !== 'object' || value === null) continue;
    if (!Array.isArray(value) && !Object.keys(value).every(isStorable)) return false;
    for (const item of Object.values(value)) left.push(item);
  }
  return true;
};

const replaced = (value: unknown): unknown => {
  if (typeof value === 'string') return storedText(value.toWellFormed());
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(replaced);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [replaced(key), replaced(member)]));
};

/**
 * What a caller sent, with each of its texts as stores hold it, so that an answer shows what is stored, and a text is the
 * same whether it is stored by itself or as part of JSON; the same value where nothing changes.
 */
export const storedJson = (value: unknown): unknown => (holdsOnlyStorable(value) ? value : replaced(value));
