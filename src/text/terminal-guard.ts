const codeUnit = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`;

// What steers a terminal, changes the direction of what follows, or is not seen. The two joiners stay: emoji and several
// writing systems need them, and they move nothing.
const steering = /(?![\n\t\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * JSON text as a terminal may see it: what would steer the terminal becomes an escape of JSON. Such characters can only
 * be part of a text there, so that a reader gets the same values.
 */
export const jsonForTerminal = (json: string): string =>
  json.replace(steering, (character) =>
    character.length === 1
      ? codeUnit(character.charCodeAt(0))
      : codeUnit(character.charCodeAt(0)) + codeUnit(character.charCodeAt(1)),
  );

/** True for a text that a terminal may not see as it is. */
export const steersTerminal = (text: string): boolean => text.search(steering) !== -1;

/** YAML text, in which every text that would steer a terminal stands in double quotes, with the escapes of YAML. */
export const yamlForTerminal = (yaml: string): string =>
  yaml.replace(steering, (character) => {
    const point = character.codePointAt(0) ?? 0;
    return point > 0xffff ? `\\U${point.toString(16).padStart(8, '0')}` : codeUnit(point);
  });

// The marks that `createStyle` sets; every other escape sequence came from elsewhere.
// biome-ignore lint/suspicious/noControlCharactersInRegex: it begins a mark.
const unstyled = /(?![\n\t])(?!\u001b\[(?:1|2|7|22|27|31|32|33|36|39)m)[\p{Cc}\p{Bidi_Control}]/gu;

/**
 * The last net before a terminal, for a text that a command made: the command's own marks pass, and a control character
 * that it has overlooked in something foreign becomes `�`.
 */
export const guardTerminal = (text: string): string => text.replaceAll('\r\n', '\n').replace(unstyled, '\ufffd');
