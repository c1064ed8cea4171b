export const maxFileBytes = 1_048_576;
export const maxTotalBytes = 10_485_760;

const filePath = /^[A-Za-z0-9._/-]{1,256}$/;

/** What is wrong with the path of an agent's file; null when it is one. */
export const filePathMistake = (path: string): string | null => {
  if (!filePath.test(path)) return 'path must be 1 to 256 of A-Z a-z 0-9 . _ - and / between its parts';
  const parts = path.split('/');
  return parts.some((part) => part === '' || part === '.' || part === '..')
    ? 'path must not have an empty part, . or ..'
    : null;
};
