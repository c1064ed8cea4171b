import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomFillSync } from 'node:crypto';
import { AcpError } from '../contract/errors.ts';

/** Where a value is stored. It is authenticated with the value, so that no value counts anywhere else. */
export interface StoredPlace {
  readonly table: string;
  readonly column: string;
  readonly tenantId: string;
  /** The key of the row, without the tenant. */
  readonly row: readonly unknown[];
}

/** Encrypts content for the store. Without an active key it writes plain text, and still reads with the keys it has. */
export type ContentCipher = ReturnType<typeof createContentCipher>;

// A sealed value: this, the id of its key, a colon, and base64 of nonce, ciphertext and tag.
const sealedPrefix = 'acp:sealed:1:';
// Plain text that would read like one of the two gets this in front.
const plainPrefix = 'acp:plain:1:';
/** True for a value that is not what it was before it was stored. */
export const isMarked = (text: string): boolean => text.startsWith(sealedPrefix) || text.startsWith(plainPrefix);

/** Characters of a value, from its first, that name its key. */
export const keyNameLength = 64;

/** The id of the key that a stored value is under, from its first characters; null: it is plain. */
export const keyNameOf = (start: string): string | null =>
  start.startsWith(sealedPrefix) ? (start.slice(sealedPrefix.length).split(':', 1)[0] ?? '') : null;

const algorithm = 'aes-256-gcm';
const nonceBytes = 12;
const tagBytes = 16;

// A call for random bytes costs more than the encryption of a short value, so nonces are drawn by the thousand.
const pool = Buffer.alloc(nonceBytes * 1024);
let drawn = pool.length;

const freshNonce = (): Buffer => {
  if (drawn === pool.length) {
    randomFillSync(pool);
    drawn = 0;
  }
  drawn += nonceBytes;
  return Buffer.from(pool.subarray(drawn - nonceBytes, drawn));
};

const failed = (reason: string, cause?: unknown): AcpError =>
  // The reason names keys of the configuration, which are for the log only.
  new AcpError('decryption-failed', 'Stored content cannot be decrypted.', { cause: new Error(reason, { cause }) });

export const isDecryptionFailure = (error: unknown): boolean =>
  error instanceof AcpError && error.code === 'decryption-failed';

const authenticated = (keyId: string, { table, column, tenantId, row }: StoredPlace): Buffer =>
  Buffer.from(JSON.stringify([1, keyId, table, column, tenantId, ...row.map(String)]));

/** `keys`: base64 of 32 bytes each, by id; the configuration has checked them. */
export const createContentCipher = (activeKeyId: string | null, keys: Readonly<Record<string, string>>) => {
  const byId = new Map<string, KeyObject>(
    Object.entries(keys).map(([id, key]) => [id, createSecretKey(key, 'base64')]),
  );
  const active = activeKeyId === null ? undefined : byId.get(activeKeyId);
  if (activeKeyId !== null && active === undefined)
    throw new Error(`There is no key "${activeKeyId}" to encrypt with.`);

  return {
    /** Null: what is written stays plain. */
    activeKeyId,
    /** Keys that it can read with. */
    keyIds: [...byId.keys()] as readonly string[],
    seal(place: StoredPlace, text: string): string {
      if (active === undefined || activeKeyId === null) return isMarked(text) ? plainPrefix + text : text;
      const nonce = freshNonce();
      const cipher = createCipheriv(algorithm, active, nonce);
      cipher.setAAD(authenticated(activeKeyId, place));
      const parts = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return `${sealedPrefix}${activeKeyId}:${Buffer.concat(parts).toString('base64')}`;
    },
    /** The text of a value, plain or sealed. Throws `decryption-failed` where its key is absent or it was changed. */
    open(place: StoredPlace, stored: string): string {
      if (!isMarked(stored)) return stored;
      if (stored.startsWith(plainPrefix)) return stored.slice(plainPrefix.length);
      const colon = stored.indexOf(':', sealedPrefix.length);
      const keyId = stored.slice(sealedPrefix.length, colon);
      const where = `${place.table}.${place.column} of ${place.row.join('/')}`;
      const key = byId.get(keyId);
      if (colon < 0 || key === undefined)
        throw failed(`${where} is under a key that Service:AtRest:Keys does not have`);
      const bytes = Buffer.from(stored.slice(colon + 1), 'base64');
      if (bytes.length < nonceBytes + tagBytes) throw failed(`${where} is cut off`);
      try {
        const end = bytes.length - tagBytes;
        const decipher = createDecipheriv(algorithm, key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
        decipher.setAAD(authenticated(keyId, place)).setAuthTag(bytes.subarray(end));
        return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, end)), decipher.final()]).toString('utf8');
      } catch (error) {
        throw failed(`${where} under key "${keyId}" is not authentic`, error);
      }
    },
  };
};

/** Writes plain text and reads nothing but that. */
export const plainContent = createContentCipher(null, {});
