import { constants, generateKeyPairSync, type KeyObject, type SignKeyObjectInput, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type Claims = Readonly<Record<string, unknown>>;
type Algorithm = 'RS256' | 'PS256' | 'ES256' | 'EdDSA';

interface SigningKey {
  readonly kid: string;
  readonly alg: Algorithm;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

const newPair = (alg: Algorithm): { privateKey: KeyObject; publicKey: KeyObject } => {
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' });
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519');
  return generateKeyPairSync('rsa', { modulusLength: 2048 });
};

const signInput = ({ alg, privateKey }: SigningKey): SignKeyObjectInput | KeyObject => {
  if (alg === 'PS256')
    return { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
  return alg === 'ES256' ? { key: privateKey, dsaEncoding: 'ieee-p1363' } : privateKey;
};

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Signs with Node's own cryptography, so that no code of the product's library checks itself. */
export const signToken = (key: SigningKey, claims: Claims, header: Claims = {}): string => {
  const input = `${encoded({ alg: key.alg, typ: 'JWT', kid: key.kid, ...header })}.${encoded(claims)}`;
  const digest = key.alg === 'EdDSA' ? null : 'sha256';
  return `${input}.${sign(digest, Buffer.from(input), signInput(key)).toString('base64url')}`;
};

/** An identity provider on loopback: discovery, keys, tokens. */
export interface TestIssuer {
  readonly url: string;
  /** How often the keys were asked for. */
  readonly asked: () => number;
  /** `down`: every answer is 500; `other`: the discovery document names somebody else; null: all is well. */
  fault: 'down' | 'other' | 'not-json' | null;
  readonly newKey: (alg?: Algorithm) => SigningKey;
  /** Publishes exactly these. */
  readonly publish: (...keys: readonly SigningKey[]) => void;
  /** A good token for the audience `acp` of the first published key, valid for ten minutes from `now`. */
  readonly token: (claims?: Claims, now?: number) => string;
}

export const startIssuer = async (t: TestContext): Promise<TestIssuer> => {
  let published: readonly SigningKey[] = [];
  let asked = 0;
  let named = 0;
  const server = createServer((request, response) => {
    const json = (value: unknown): void => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    };
    if (request.url === '/keys') asked += 1;
    if (issuer.fault === 'down') response.writeHead(500).end();
    else if (issuer.fault === 'not-json') response.writeHead(200).end('<html>');
    else if (request.url === '/.well-known/openid-configuration')
      json({ issuer: issuer.fault === 'other' ? 'http://other' : issuer.url, jwks_uri: `${issuer.url}/keys` });
    else if (request.url === '/keys')
      json({
        keys: published.map(({ kid, alg, publicKey }) => ({
          ...publicKey.export({ format: 'jwk' }),
          kid,
          alg,
          use: 'sig',
        })),
      });
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const newKey: TestIssuer['newKey'] = (alg = 'ES256') => {
    named += 1;
    return { kid: `key-${named}`, alg, ...newPair(alg) };
  };
  const issuer: TestIssuer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    fault: null,
    newKey,
    publish(...keys) {
      published = keys;
    },
    token(claims = {}, now = Date.now()) {
      const [key] = published;
      if (key === undefined) throw new Error('The issuer has published no key.');
      const seconds = Math.floor(now / 1000);
      return signToken(key, {
        iss: issuer.url,
        aud: 'acp',
        sub: 'ada',
        iat: seconds,
        exp: seconds + 600,
        roles: ['Operator'],
        ...claims,
      });
    },
  };
  issuer.publish(newKey());
  return issuer;
};
