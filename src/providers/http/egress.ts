import { lookup as systemLookup } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import type { Agent } from 'undici';
// The package's index holds its fetch, caches and mocks as well, which cost a process 8 MB and its start 75 ms.
import UndiciAgent from 'undici/lib/dispatcher/agent.js';
import { isPublicAddress } from './address.ts';
import { OutboundError } from './outbound-error.ts';

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Every address of a host name, in the order to try them. */
export type HostResolver = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export interface EgressOptions {
  /** `Service:Egress:AllowPrivateNetworkTargets`. */
  readonly allowPrivate: boolean;
  /** Default: the operating system's resolver, hosts file included. */
  readonly resolve?: HostResolver;
  /** Called when a target is refused as it is connected to. */
  readonly onRefusal?: (() => void) | undefined;
}

const resolveBySystem: HostResolver = (hostname) => systemLookup(hostname, { all: true });

const isLocalName = (host: string): boolean => host === 'localhost' || host.endsWith('.localhost');

/**
 * Checks what a URL tells without a lookup: the scheme, and a host that is an IP literal in any notation or a name of
 * this host. `scheme`: neither http nor https. `private`: not on the public internet. Null: no objection; a host name
 * is checked once more when it is resolved.
 */
export const checkUrlTarget = (url: URL): 'scheme' | 'private' | null => {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'scheme';
  // The parser has already turned 0x7f.1, 2130706433 and full-width digits into dotted form.
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.+$/, '');
  if (isLocalName(host.toLowerCase())) return 'private';
  return isIP(host) !== 0 && !isPublicAddress(host) ? 'private' : null;
};

/** Node's lookup for a socket: the addresses that it connects to are the ones that were checked. */
const checkedLookup =
  ({ resolve = resolveBySystem, allowPrivate, onRefusal }: EgressOptions): LookupFunction =>
  (hostname, options, callback) => {
    const fail = (error: OutboundError): void => callback(error, options.all === true ? [] : '', 0);
    const refuse = (): void => {
      onRefusal?.();
      fail(new OutboundError('target-not-allowed'));
    };
    resolve(hostname).then(
      (addresses) => {
        const wanted = options.family === 4 || options.family === 6 ? options.family : null;
        const usable = addresses.filter(({ family }) => wanted === null || family === wanted);
        // One private address among public ones is refused too: which one a socket takes is chance.
        if (!allowPrivate && addresses.some(({ address }) => !isPublicAddress(address))) refuse();
        else if (usable[0] === undefined) fail(new OutboundError('unresolved'));
        else if (options.all === true)
          callback(
            null,
            usable.map(({ address, family }) => ({ address, family })),
          );
        else callback(null, usable[0].address, usable[0].family);
      },
      (cause: unknown) => fail(new OutboundError('unresolved', cause)),
    );
  };

/** Connections of one origin that are kept for the next request; more are opened when needed and closed after. */
const keptOpenMs = 10_000;
const connectTimeoutMs = 10_000;

const agentTo = (lookup: LookupFunction): Agent =>
  new UndiciAgent({
    allowH2: false,
    keepAliveTimeout: keptOpenMs,
    connect: { timeout: connectTimeoutMs, lookup },
  });

/**
 * A dispatcher whose every connection goes to a checked address. It follows no redirect and knows no proxy. A literal
 * address never reaches the lookup, so callers check the URL with `checkUrlTarget` first.
 */
export const createEgressAgent = (options: EgressOptions): Agent => agentTo(checkedLookup(options));

/** Gives a socket what was resolved and checked before. */
const pinnedLookup =
  (addresses: readonly ResolvedAddress[]): LookupFunction =>
  (_hostname, options, callback) => {
    const wanted = options.family === 4 || options.family === 6 ? options.family : null;
    const usable = addresses.filter(({ family }) => wanted === null || family === wanted);
    if (usable[0] === undefined) callback(new OutboundError('unresolved'), options.all === true ? [] : '', 0);
    else if (options.all === true) callback(null, [...usable]);
    else callback(null, usable[0].address, usable[0].family);
  };

/** Which dispatcher a request goes through. */
export interface EgressDoor {
  /** Throws OutboundError. The URL has passed `checkUrlTarget`. */
  agentFor(url: URL): Agent | Promise<Agent>;
  close(): Promise<void>;
}

/** Looked up for each connection: what is kept open serves the next request whatever the name means by then. */
export const connectionDoor = (options: EgressOptions): EgressDoor => {
  const agent = createEgressAgent(options);
  return { agentFor: () => agent, close: () => agent.close() };
};

// Sets of addresses whose connections are kept for further requests; of a sender to many hosts the latest.
const mostPinned = 200;

/**
 * Looked up for each request, whose connection is to an address of that look-up alone: one that is kept open serves it only
 * where the name still means the same addresses.
 */
export const requestDoor = ({ resolve = resolveBySystem, allowPrivate, onRefusal }: EgressOptions): EgressDoor => {
  const pinned = new Map<string, Agent>();
  const underWay = new Map<string, Promise<readonly ResolvedAddress[]>>();

  /** Requests of one moment share a look-up, which has begun for none of them before it was asked for. */
  const resolved = (hostname: string): Promise<readonly ResolvedAddress[]> => {
    const begun = underWay.get(hostname);
    if (begun !== undefined) return begun;
    const looking = resolve(hostname)
      .catch((cause: unknown) => {
        throw new OutboundError('unresolved', cause);
      })
      .finally(() => underWay.delete(hostname));
    underWay.set(hostname, looking);
    return looking;
  };

  const pin = (key: string, addresses: readonly ResolvedAddress[]): Agent => {
    const kept = pinned.get(key);
    if (kept !== undefined) {
      // The one that was used last is closed last.
      pinned.delete(key);
      pinned.set(key, kept);
      return kept;
    }
    const oldest = pinned.size < mostPinned ? undefined : pinned.keys().next().value;
    // Its connections end by themselves once nobody uses them.
    if (oldest !== undefined) pinned.delete(oldest);
    const agent = agentTo(pinnedLookup(addresses));
    pinned.set(key, agent);
    return agent;
  };

  return {
    agentFor(url) {
      const host = url.hostname.replace(/^\[|\]$/g, '');
      // A literal needs no look-up, and was checked with the URL.
      if (isIP(host) !== 0) return pin('literal', []);
      return resolved(host).then((addresses) => {
        // One private address among public ones is refused too: which one a socket takes is chance.
        if (!allowPrivate && addresses.some(({ address }) => !isPublicAddress(address))) {
          onRefusal?.();
          const told = addresses.map(({ address }) => address).join(', ');
          // For the log alone: whoever asked may not learn it.
          throw new OutboundError('target-not-allowed', new Error(`The name ${host} means ${told}.`));
        }
        if (addresses.length === 0) throw new OutboundError('unresolved');
        // In whatever order they are told this time.
        return pin([host, ...addresses.map(({ address }) => address).sort()].join(' '), addresses);
      });
    },
    async close() {
      await Promise.all([...pinned.values()].map((agent) => agent.close()));
    },
  };
};
