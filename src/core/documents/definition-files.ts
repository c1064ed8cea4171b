import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** A pipe, socket or device: reading one below a folder could wait forever. */
class SpecialFileError extends Error {
  readonly code = 'special-file';

  constructor(path: string) {
    super(`${path} is a pipe, a socket or a device.`);
    this.name = 'SpecialFileError';
  }
}

const definitionFile = /\.(?:ya?ml|json)$/i;

/**
 * Paths of the YAML and JSON files below a folder, in code-point order; hidden entries are left out, links to folders are not
 * followed. `report` gets each folder that cannot be read and each entry that is no regular file, with the error; the others
 * are listed all the same.
 */
export const definitionFilesBelow = async (
  folder: string,
  report: (path: string, error: unknown) => void,
): Promise<string[]> => {
  const files: string[] = [];
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const visible = entries.filter(({ name }) => !name.startsWith('.')).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const entry of visible) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) files.push(...(await definitionFilesBelow(path, report)));
      else if (definitionFile.test(entry.name)) {
        const about = entry.isSymbolicLink() ? await stat(path).catch(() => entry) : entry;
        const isSpecial = about.isFIFO() || about.isSocket() || about.isCharacterDevice() || about.isBlockDevice();
        if (isSpecial) report(path, new SpecialFileError(path));
        else files.push(path);
      }
    }
  } catch (error) {
    report(folder, error);
  }
  return files;
};
