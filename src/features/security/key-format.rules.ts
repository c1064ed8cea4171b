import { hash, randomBytes } from 'node:crypto';

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const base = BigInt(digits.length);
// 62^43 is the first power of 62 above 2^256, so that every 256-bit number fits.
const secretLength = 43;
const prefixLength = 12;

const keyShape = /^acp_[A-Za-z0-9._-]{1,64}_[0-9A-Za-z]{43}$/;

export const looksLikeApiKey = (text: string): boolean => keyShape.test(text);

const base62 = (bytes: Uint8Array): string => {
  let rest = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  let text = '';
  while (text.length < secretLength) {
    text = (digits[Number(rest % base)] ?? '0') + text;
    rest /= base;
  }
  return text;
};

/** `acp_<tenant>_<43 base62 characters>`, 256 bits of randomness. */
export const newApiKey = (tenantId: string): string => `acp_${tenantId}_${base62(randomBytes(32))}`;

/** SHA-256 as lower-case hex; the only form of a key that is stored. */
export const apiKeyHash = (key: string): string => hash('sha256', key, 'hex');

export const apiKeyPrefix = (key: string): string => key.slice(0, prefixLength);
