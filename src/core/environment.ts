/** Variables of this process, as they are now. No other file reads `process.env`. */
export const environment = (): Readonly<Record<string, string | undefined>> => process.env;
