import { systemCode } from '../../core/files/system-code.ts';

/**
 * A statement that the server keeps would give other columns than when it was read, since another version has changed the
 * table. It has a code that means much else (feature_not_supported), and is told apart by where the server raised it.
 */
export const isOutdatedPlan = (error: unknown): boolean =>
  systemCode(error) === '0A000' && (error as { readonly routine?: string }).routine === 'RevalidateCachedQuery';
