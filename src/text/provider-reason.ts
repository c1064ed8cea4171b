import type { ProviderNames } from '../contract/errors.ts';
import { safeLine } from './text-width.ts';

/** What a provider called the refusal of a call, and where the rest stands, on one line. */
export const providerReasonText = ({ code, type, param, requestId }: ProviderNames): string => {
  const names = Object.entries({ code, type, param }).filter(([, name]) => name !== null);
  const named = names.map(([what, name]) => `${what} ${name}`).join(', ');
  return safeLine(`provider: ${named} (the log has the rest under request ${requestId})`);
};
