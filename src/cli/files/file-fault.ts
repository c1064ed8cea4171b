import { AcpError } from '../../contract/errors.ts';

/** Code of a failed call of the system, such as `EACCES`. */
export const faultCode = (error: unknown, unknown = 'unknown'): string =>
  error instanceof Error && 'code' in error ? String(error.code) : unknown;

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'it may not be read',
  EISDIR: 'it is a folder',
  'special-file': 'it is a pipe, a socket or a device',
};

/** A file or folder that was named and cannot be read; `own` are reasons that are worded otherwise. */
export const unreadableFile = (path: string, cause: unknown, own: Readonly<Record<string, string>> = {}): AcpError => {
  const code = faultCode(cause, 'unknown error');
  return new AcpError('validation-failed', `${path} cannot be read: ${own[code] ?? reasons[code] ?? code}.`, { cause });
};
