import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { AcpError } from '../../contract/errors.ts';
import { privateFileMode } from '../../core/files/private-file.ts';
import { systemCode } from '../../core/files/system-code.ts';
import type { SigningKeys } from './signing-key.store.ts';

const retryAfterMs = 5000;

const unusable = (path: string, why: string, cause: unknown): AcpError =>
  new AcpError('audit-unavailable', `The signing key ${path} ${why}.`, { cause, details: { retryAfterMs } });

const keyOf = (pem: string, path: string): KeyObject => {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch (error) {
    throw unusable(path, 'is no private key in PEM', error);
  }
  throw unusable(path, 'is no Ed25519 key', null);
};

const pemOf = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' });

const readKey = async (path: string): Promise<KeyObject | null> => {
  let pem: string;
  try {
    pem = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return null;
    throw unusable(path, 'cannot be read', error);
  }
  return keyOf(pem, path);
};

/**
 * The Ed25519 key that exports are signed with, made at the first one: PKCS #8 in PEM, readable by its owner alone. It
 * gets its name only when it is whole, and never replaces one that another process made at the same moment.
 */
export const loadSigningKey = async (path: string): Promise<KeyObject> => {
  const existing = await readKey(path);
  if (existing !== null) return existing;
  const { privateKey } = generateKeyPairSync('ed25519');
  const draft = `${path}.${process.pid}.partial`;
  try {
    await rm(draft, { force: true });
    await writeFile(draft, pemOf(privateKey), { flag: 'wx', mode: privateFileMode });
    await link(draft, path);
    return privateKey;
  } catch (error) {
    const other = systemCode(error) === 'EEXIST' ? await readKey(path) : null;
    if (other !== null) return other;
    throw unusable(path, 'cannot be written', error);
  } finally {
    await rm(draft, { force: true });
  }
};

/** The same in the store, under its key for content where it has one: for processes that have no folder in common. */
export const storedSigningKey = async (store: SigningKeys): Promise<KeyObject> => {
  const place = 'of the store';
  const existing = await store.read();
  if (existing !== null) return keyOf(existing, place);
  const { privateKey } = generateKeyPairSync('ed25519');
  return keyOf(await store.offer(String(pemOf(privateKey))), place);
};
