/** Variables of this process, as they are now. No other file reads `process.env`. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}
