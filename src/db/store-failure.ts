import { AcpError } from '../contract/errors.ts';
import type { StoreFailure } from './dialect.ts';

const reasons = {
  conflict: 'Others changed the same at the same time, again and again.',
  slow: 'The store took too long.',
  full: 'The disk of the store is full.',
  'read-only': 'The store is read-only.',
  busy: 'The store is locked by another process.',
  corrupt: 'The store file is damaged; run `acp db check`.',
  unavailable: 'The store cannot be reached.',
  'in-doubt': 'The connection to the store was lost while it was written: look whether it was before you try again.',
} as const;

/** Nothing is where a store is looked for. */
export class NoStoreError extends AcpError {
  constructor(where: string) {
    super('store-missing', `There is no store at ${where}.`);
  }
}

// A full disk or a lock of another program passes within seconds or needs a person; asking sooner helps neither.
const retryAfterMs = 5000;

/**
 * A driver's error as one of the service; a unique violation and what is not the store's doing stay what they are,
 * for the code that knows what they mean.
 */
export const translateStoreError = (classify: (error: unknown) => StoreFailure, error: unknown): unknown => {
  const failure = classify(error);
  if (failure === null || failure === 'unique-violation') return error;
  if (failure === 'unstorable-text')
    return new AcpError('validation-failed', 'The store takes no text with the character U+0000.', { cause: error });
  return new AcpError('store-unavailable', reasons[failure], { cause: error, details: { retryAfterMs } });
};
