import { AcpError } from '../../contract/errors.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { StoreFailure } from '../dialect.ts';

const failures: Readonly<Record<string, StoreFailure>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'read-only',
  EACCES: 'read-only',
  EPERM: 'read-only',
};

/** What an error of the file system means, by its code; an error that has none is somebody else's. */
export const classifyFile = (error: unknown): StoreFailure => {
  const cause = error instanceof AcpError ? error.cause : error;
  const code = systemCode(cause);
  return code === '' ? null : (failures[code] ?? 'unavailable');
};
