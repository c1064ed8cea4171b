/** A JSON text of a shape that grows to about so many bytes. */
export interface HostileJson {
  readonly name: string;
  make(bytes: number): string;
}

const filled = (name: string, open: string, close: string, element: (at: number) => string): HostileJson => ({
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

/** As many elements as fit. */
export const filledArray = (name: string, element: (at: number) => string): HostileJson =>
  filled(name, '[', ']', element);

/** The same element as often as it fits. */
export const repeatedElement = (name: string, element: string): HostileJson => ({
  name,
  make(bytes) {
    const count = Math.max(1, Math.floor((bytes - 1) / (element.length + 1)));
    return `[${`${element},`.repeat(count).slice(0, -1)}]`;
  },
});

/** As many properties as fit, each with a name of its own. */
export const filledObject = (name: string, value: string): HostileJson =>
  filled(name, '{', '}', (at) => `"k${at.toString(36)}":${value}`);

const repeatedText = (name: string, text: string): HostileJson => ({
  name,
  make: (bytes) => `"${text.repeat(Math.max(1, Math.floor((bytes - 2) / text.length)))}"`,
});

const nested = (depth: number, open: string, close: string): string => `${open.repeat(depth)}0${close.repeat(depth)}`;

/** Texts that are expensive to scan, to split, to trim, to normalise or to escape. */
export const longTexts: readonly HostileJson[] = [
  repeatedText('one long text', 'a'),
  repeatedText('spaces', ' '),
  repeatedText('lines', '\\n'),
  repeatedText('NULs', '\\u0000'),
  repeatedText('digits', '9'),
  repeatedText('slashes', '/.'),
  repeatedText('brackets', '{{[('),
  repeatedText('accents', 'e\u0301'),
];

export const longNumber: HostileJson = { name: 'one long number', make: (bytes) => '1'.repeat(Math.max(1, bytes)) };

/** Lists of what takes the fewest bytes. */
export const tinyElements: readonly HostileJson[] = [
  repeatedElement('numbers', '0'),
  repeatedElement('empty objects', '{}'),
  repeatedElement('empty texts', '""'),
];

/** What a place that takes any JSON may hold. */
export const anyJson: readonly HostileJson[] = [
  ...tinyElements,
  filledObject('properties', '0'),
  filledObject('properties with objects', '{}'),
  filledArray('objects with names of their own', (at) => `{"k${at.toString(36)}":0}`),
  repeatedElement('nested lists', nested(50, '[', ']')),
  repeatedElement('nested objects', nested(50, '{"a":', '}')),
  { name: 'one deep list', make: (bytes) => nested(Math.floor(bytes / 2), '[', ']') },
  { name: 'open brackets', make: (bytes) => '['.repeat(Math.max(1, bytes)) },
  longNumber,
];
