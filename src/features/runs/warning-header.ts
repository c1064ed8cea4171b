import type { RunWarning } from '../../contract/run-outcome.ts';

/** Names what the store could not do for a run; no header where nothing is missing. */
export const warningHeader = (warnings: readonly RunWarning[]): Record<string, string> =>
  warnings.length === 0 ? {} : { 'X-Acp-Warning': warnings.join(', ') };
