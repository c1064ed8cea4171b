import { createLocalJWKSet } from 'jose/jwks/local';
import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import type { Logger } from '../../core/logger.ts';
import { isLoopbackHost } from './loopback.rules.ts';

/** The public keys of the issuer at one moment. */
export type KeySet = ReturnType<typeof createLocalJWKSet>;

export interface IssuerKeysDeps {
  readonly issuer: string;
  /** The JSON at an address; throws for anything but a good answer. */
  readonly fetchJson: (url: URL) => Promise<unknown>;
  readonly log: Pick<Logger, 'warn'>;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

// A token with a made-up key id must not turn this service into a load on the issuer.
const unknownKeyEveryMs = 60_000;
// Meanwhile requests are refused at once instead of waiting for an issuer that is down.
const afterFailureMs = 5000;
// Keys that the issuer has withdrawn go with the next refresh, which nobody waits for.
const refreshAfterMs = 10 * 60_000;
// An issuer that is away this long may have withdrawn a key that was stolen: then nobody is let in.
const usableMs = 60 * 60_000;

const unavailable = (cause?: unknown): AcpError =>
  new AcpError('identity-unavailable', 'The keys of the identity provider cannot be read now.', {
    ...(cause === undefined ? {} : { cause }),
    details: { retryAfterMs: afterFailureMs },
  });

/** Keys travel unencrypted only where the issuer itself is on this machine. */
const mayBeAsked = (url: URL, issuer: URL): boolean =>
  url.protocol === 'https:' ||
  (url.protocol === 'http:' && issuer.protocol === 'http:' && isLoopbackHost(url.host) && isLoopbackHost(issuer.host));

/** Address of the keys, from a discovery document (OpenID Connect Discovery 1.0) that must name the same issuer. */
const keyAddress = (document: unknown, issuer: string): URL => {
  if (!isRecord(document) || document['issuer'] !== issuer)
    throw new Error('The discovery document names another issuer than Host:Oidc:Issuer.');
  const address = typeof document['jwks_uri'] === 'string' ? URL.parse(document['jwks_uri']) : null;
  if (address === null || !mayBeAsked(address, new URL(issuer)))
    throw new Error('The discovery document has no https jwks_uri.');
  return address;
};

const discoveryAddress = (issuer: string): URL =>
  new URL(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`);

export interface PublishedKeys {
  readonly address: string;
  /** Key type and algorithm of each key, such as `RSA RS256`; the algorithm may be missing. */
  readonly kinds: readonly string[];
}

/** Reads the discovery document and the keys once, as for a token. */
export const publishedKeys = async (issuer: string, fetchJson: IssuerKeysDeps['fetchJson']): Promise<PublishedKeys> => {
  const address = keyAddress(await fetchJson(discoveryAddress(issuer)), issuer);
  const published = await fetchJson(address);
  // Throws for what is no key set.
  createLocalJWKSet(published as Parameters<typeof createLocalJWKSet>[0]);
  const { keys } = published as { readonly keys: readonly Readonly<Record<string, unknown>>[] };
  return { address: address.href, kinds: keys.map(({ kty, alg }) => [kty, alg].filter(Boolean).join(' ')) };
};

/** What the issuer publishes: its discovery document and, where that says, its keys. */
export const issuerKeys = ({ issuer, fetchJson, log, now }: IssuerKeysDeps) => {
  const discovery = discoveryAddress(issuer);
  let address: URL | null = null;
  let loaded: { readonly keys: KeySet; readonly at: number } | null = null;
  let loading: Promise<KeySet> | null = null;
  let attemptedAt = Number.NEGATIVE_INFINITY;
  let failed = false;
  let askedForUnknownAt = Number.NEGATIVE_INFINITY;

  // A clock that was set back makes everything old, not young.
  const isWithin = (since: number, ms: number): boolean => {
    const age = now() - since;
    return age >= 0 && age < ms;
  };

  const fetchKeys = async (): Promise<KeySet> => {
    address ??= keyAddress(await fetchJson(discovery), issuer);
    const published = await fetchJson(address);
    return createLocalJWKSet(published as Parameters<typeof createLocalJWKSet>[0]);
  };

  const load = (): Promise<KeySet> => {
    if (loading !== null) return loading;
    attemptedAt = now();
    loading = fetchKeys()
      .then(
        (keys) => {
          loaded = { keys, at: now() };
          failed = false;
          return keys;
        },
        (error: unknown) => {
          failed = true;
          // The issuer may have moved its keys.
          address = null;
          log.warn({ error, issuer }, 'The keys of the identity provider could not be read');
          throw unavailable(error);
        },
      )
      .finally(() => {
        loading = null;
      });
    return loading;
  };

  const isDue = (loadedAt: number): boolean =>
    failed ? !isWithin(attemptedAt, unknownKeyEveryMs) : !isWithin(loadedAt, refreshAfterMs);

  return {
    /** Throws `identity-unavailable` while no keys can be had. */
    current(): KeySet | Promise<KeySet> {
      if (loaded !== null && isWithin(loaded.at, usableMs)) {
        // A failure is logged, and the keys at hand are good for a while.
        if (isDue(loaded.at)) load().catch(() => undefined);
        return loaded.keys;
      }
      if (loading === null && failed && isWithin(attemptedAt, afterFailureMs)) throw unavailable();
      return load();
    },
    /** For a key that is not in `keys`: a newer set, asked for at most once a minute; null when there is none. */
    newerThan(keys: KeySet): KeySet | null | Promise<KeySet | null> {
      if (loaded !== null && loaded.keys !== keys) return loaded.keys;
      if (loading !== null) return loading;
      if (isWithin(askedForUnknownAt, unknownKeyEveryMs)) {
        if (failed) throw unavailable();
        return null;
      }
      askedForUnknownAt = now();
      return load();
    },
  };
};

export type IssuerKeys = ReturnType<typeof issuerKeys>;
