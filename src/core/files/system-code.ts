/** Code of what a call of the system threw, such as `ENOENT`; empty: it has none. */
export const systemCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
