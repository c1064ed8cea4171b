import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { AcpError } from '../../contract/errors.ts';
import { privateFileMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { SigningKeyMove, SigningKeyPlace } from '../../db/move/move-store.ts';
import { signingKeyStore } from './signing-key.store.ts';

const readFileOf = async (path: string): Promise<string | null> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw new AcpError('audit-unavailable', `The signing key ${path} cannot be read.`, { cause: error });
  }
};

const readKey = ({ storage, file }: SigningKeyPlace): Promise<string | null> =>
  file === null ? storage.stores(signingKeyStore).read() : readFileOf(file);

const writeKeyFile = async (path: string, pem: string): Promise<void> => {
  const draft = `${path}.${process.pid}.partial`;
  try {
    await rm(draft, { force: true });
    await writeFile(draft, pem, { flag: 'wx', mode: privateFileMode, flush: true });
    await link(draft, path);
  } catch (error) {
    // Of an earlier call: both are the same, or `look` has thrown.
    if (systemCode(error) !== 'EEXIST') throw error;
  } finally {
    await rm(draft, { force: true });
  }
};

/** Takes the key that signs exports along with a store, so that later exports are checked with the same public key. */
export const signingKeyMove: SigningKeyMove = {
  async look(from, toFile) {
    const pem = await readKey(from);
    if (pem === null || toFile === null) return pem !== null;
    const other = await readFileOf(toFile);
    if (other === null || other === pem) return true;
    throw new AcpError(
      'validation-failed',
      `${toFile} is another key than the one that signs the exports of the source: move it away, or take another target.`,
    );
  },
  async carry(from, to) {
    const pem = await readKey(from);
    if (pem === null) return;
    if (to.file === null) await to.storage.stores(signingKeyStore).replace(pem);
    else {
      await writeKeyFile(to.file, pem);
      // A store in a file signs with its file, and the secret is to lie in one place.
      await to.storage.stores(signingKeyStore).remove();
    }
  },
};
