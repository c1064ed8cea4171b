// Control characters but tab and line ends; marks of direction and joiners, which nobody sees; tags, which nobody can read.
const hidden =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

const written = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}}`;

/** A foreign text in which nothing is hidden: characters that are not shown, or turn the direction of others, are written out. */
export const visibleText = (text: string): string => text.toWellFormed().replace(hidden, written);
