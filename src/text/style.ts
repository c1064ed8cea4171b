const codes = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
  inverse: [7, 27],
} as const;

export type StyleName = keyof typeof codes;

/** Marks up text, or leaves it as it is where colour is off. */
export type Style = Readonly<Record<StyleName, (text: string) => string>>;

export const createStyle = (enabled: boolean): Style =>
  Object.fromEntries(
    Object.entries(codes).map(([name, [on, off]]) => [
      name,
      (text: string) => (enabled && text !== '' ? `\u001b[${on}m${text}\u001b[${off}m` : text),
    ]),
  ) as Style;
