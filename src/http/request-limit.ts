import { isIPv6 } from 'node:net';
import { AcpError } from '../contract/errors.ts';
import type { CallerRequest } from '../core/caller/caller-request.ts';
import type { ClientAddress } from '../core/caller/client-address.ts';
import type { Caller } from '../core/context.ts';
import type { HeaderFields } from './answer.ts';
import { createRateLimiter, type Permit } from './rate-limit.ts';

export interface RequestLimitOptions {
  readonly permitLimit: number;
  readonly windowMs: number;
  readonly queueLimit: number;
  readonly partition: 'Tenant' | 'ApiKey' | 'RemoteAddress';
  readonly clientAddress: ClientAddress;
}

/** Where requests are held back. */
export interface RequestLimit {
  /**
   * Gives the header fields that tell the caller, or undefined where it is not the time to count: addresses before the
   * caller is known (null), everybody else once the caller's authority is.
   */
  take(request: CallerRequest, caller: Caller | null, signal: AbortSignal): Limited;
  /** Fields of the answer to a request that was held back. */
  refusal(error: unknown): HeaderFields | undefined;
  close(): void;
}

type Limited = HeaderFields | undefined | Promise<HeaderFields>;

/** The first 64 bits of an IPv6 address: what one subscriber has, who could use any address in it. */
const network = (address: string): string => {
  const [head = '', tail] = address.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - before.length - after.length);
  const groups = [...before, ...new Array<string>(zeros).fill('0'), ...after];
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');
};

export const addressPartition = (address: string): string => (isIPv6(address) ? `${network(address)}::/64` : address);

/** Tells one caller from every other one: an API key, or a person or program of a tenant. */
export const callerKey = ({ principal, tenantId }: Caller): string =>
  principal.apiKey === null
    ? JSON.stringify([tenantId, principal.actor])
    : JSON.stringify(['key', principal.apiKey.id]);

/** Limits requests and tells of it in the fields of draft-ietf-httpapi-ratelimit-headers (09). */
export const createRequestLimit = (options: RequestLimitOptions): RequestLimit => {
  const { permitLimit, windowMs, partition, clientAddress } = options;
  const limiter = createRateLimiter({ ...options, now: () => performance.now() });
  // Quota and window; seconds are whole numbers there, and a shorter window counts as one.
  const policy = `"requests";q=${permitLimit};w=${Math.max(1, Math.ceil(windowMs / 1000))}`;
  const fieldsOf = ({ remaining, resetMs }: Permit): HeaderFields => ({
    'ratelimit-policy': policy,
    ratelimit: `"requests";r=${remaining};t=${Math.max(0, Math.ceil(resetMs / 1000))}`,
  });
  return {
    take(request, caller, signal) {
      if ((caller === null) !== (partition === 'RemoteAddress')) return undefined;
      const name =
        caller === null
          ? addressPartition(clientAddress(request))
          : partition === 'Tenant'
            ? caller.tenantId
            : callerKey(caller);
      const permit = limiter.acquire(name, signal);
      return permit instanceof Promise ? permit.then(fieldsOf) : fieldsOf(permit);
    },
    refusal: (error) =>
      error instanceof AcpError && error.code === 'rate-limited'
        ? fieldsOf({ remaining: 0, resetMs: error.details.retryAfterMs ?? windowMs })
        : undefined,
    close: () => limiter.close(),
  };
};
