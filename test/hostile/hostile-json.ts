/** A document that grows to about so many bytes. */
export interface Hostile {
  readonly name: string;
  make(bytes: number): string;
}

/** As many of an element as fit between the brackets. */
const filled = (name: string, open: string, close: string, element: (at: number) => string): Hostile => ({
  name,
  make(bytes) {
    const parts: string[] = [];
    let size = open.length + close.length;
    for (let at = 0; ; at += 1) {
      const part = element(at);
      size += part.length + 1;
      if (size > bytes && at > 0) break;
      parts.push(part);
    }
    return `${open}${parts.join()}${close}`;
  },
});

export const filledArray = (name: string, element: string | ((at: number) => string)): Hostile =>
  filled(name, '[', ']', typeof element === 'string' ? () => element : element);

export const filledObject = (name: string, value: string, keyOf = (at: number) => `k${at.toString(36)}`): Hostile =>
  filled(name, '{', '}', (at) => `"${keyOf(at)}":${value}`);

const repeated = (name: string, text: string): Hostile => ({
  name,
  make: (bytes) => `"${text.repeat(Math.max(1, Math.floor((bytes - 2) / text.length)))}"`,
});

const nested = (depth: number, open: string, close: string): string =>
  open.repeat(depth) + '0'.repeat(1) + close.repeat(depth);

/** Texts that cost the most to scan, to measure and to normalise. */
export const longStrings: readonly Hostile[] = [repeated('one long string', 'a'), repeated('spaces', ' ')];

/** Lists of what takes the fewest bytes. */
export const tinyElements: readonly Hostile[] = [filledArray('numbers', '0'), filledArray('empty objects', '{}')];

/** What a place that takes any JSON may hold. */
export const anyJson: readonly Hostile[] = [
  ...tinyElements,
  filledObject('members', '0'),
  filledArray('objects of shapes of their own', (at) => `{"k${at.toString(36)}":0}`),
  filledArray('lists to a depth', nested(50, '[', ']')),
];
