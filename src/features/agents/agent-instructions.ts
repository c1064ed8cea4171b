/** `{{name}}`; anything else in double braces is text. */
const placeholder = /\{\{([A-Za-z_][A-Za-z0-9_]{0,63})\}\}/g;

/** Instruction texts of one definition. */
export interface InstructionTexts {
  readonly instructions: string | null;
  readonly instructionsByCulture: Readonly<Record<string, string>> | null;
}

// Far longer than any tag in use. The lookup takes quadratic time, and a request may hold megabytes.
const maxTagLength = 128;

/** A structurally valid BCP 47 language tag. */
export const isCultureTag = (tag: string): boolean => {
  try {
    return Intl.getCanonicalLocales(tag).length === 1;
  } catch (error) {
    // There is no other way to ask: an invalid tag throws.
    if (error instanceof RangeError) return false;
    throw error;
  }
};

/** Every instruction text of a definition with its member path. */
export const instructionTexts = (
  texts: InstructionTexts,
): readonly { readonly path: string; readonly text: string }[] => [
  ...(texts.instructions === null ? [] : [{ path: 'instructions', text: texts.instructions }]),
  ...Object.entries(texts.instructionsByCulture ?? {}).map(([culture, text]) => ({
    path: `instructionsByCulture.${culture}`,
    text,
  })),
];

/** Names of the placeholders in a text, each once, in order of appearance. */
export const placeholdersOf = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(placeholder)].map((match) => match[1] ?? ''));

/** Values in place of placeholders, in one pass: a value is never looked through again. */
export const fillPlaceholders = (text: string, values: Readonly<Record<string, string>>): string =>
  text.replace(placeholder, (whole, name: string) => (Object.hasOwn(values, name) ? (values[name] ?? '') : whole));

/**
 * Chooses among a definition's texts: the culture as given, then without its last subtag, and so on, then the
 * default (the lookup of RFC 4647, section 3.4). A culture that is no tag takes the default.
 */
export const instructionChooser = (texts: InstructionTexts): ((culture: string | null) => string | null) => {
  const byCulture = new Map(
    Object.entries(texts.instructionsByCulture ?? {}).map(([culture, text]) => [culture.toLowerCase(), text]),
  );
  const fallback = texts.instructions;
  return (culture) => {
    if (culture === null || byCulture.size === 0 || culture.length > maxTagLength || !isCultureTag(culture))
      return fallback;
    for (let tag = culture.toLowerCase(); tag !== ''; tag = tag.slice(0, Math.max(tag.lastIndexOf('-'), 0))) {
      const text = byCulture.get(tag);
      if (text !== undefined) return text;
    }
    return fallback;
  };
};

/** Texts in the order in which the model reads them, an empty line between; null when none has content. */
export const joinInstructions = (texts: readonly (string | null)[]): string | null => {
  const present = texts.filter((text) => text !== null && text !== '');
  return present.length === 0 ? null : present.join('\n\n');
};
