const nul = '\0';
const replacement = '\uFFFD';

/**
 * A text as every store holds it: PostgreSQL takes no U+0000, so U+FFFD takes its place on all of them. Half a surrogate
 * pair becomes U+FFFD as well, when a driver encodes the text as UTF-8. JSON escapes both, and keeps them.
 */
export const storedText = (text: string): string => (text.includes(nul) ? text.replaceAll(nul, replacement) : text);

const holdsNul = (value: unknown): boolean => typeof value === 'string' && value.includes(nul);

/** Parameters of a statement with their texts as stores hold them; the same array where nothing changes. */
export const storedParameters = (parameters: readonly unknown[]): readonly unknown[] =>
  parameters.some(holdsNul)
    ? parameters.map((value) => (typeof value === 'string' ? storedText(value) : value))
    : parameters;
