import { BlockList, isIP } from 'node:net';
import type { CallerRequest } from './caller-request.ts';

/** The address that a request came from, for limits and logs; never for access: SEC-5 looks at the peer alone. */
export type ClientAddress = (request: Pick<CallerRequest, 'peerAddress' | 'header'>) => string;

// A dual-stack socket reports an IPv4 peer in IPv6 form; both must count as one client.
const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/;

/** In one notation: lower case, without a zone, IPv4 as IPv4. */
const plain = (address: string): string => {
  const bare = (address.split('%', 1)[0] ?? '').toLowerCase();
  return mapped.exec(bare)?.[1] ?? bare;
};

/** The address in an entry of X-Forwarded-For, which some proxies write with a port; null when it is none. */
const addressIn = (entry: string): string | null => {
  const text = entry.trim();
  const bare = /^\[([^\]]+)\](?::\d{1,5})?$/.exec(text)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(text)?.[1] ?? text;
  return isIP(bare) === 0 ? null : plain(bare);
};

const trustedList = (ranges: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const version = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, version);
    else list.addSubnet(address, Number(bits), version);
  }
  return list;
};

/**
 * Behind trusted proxies (addresses or CIDR ranges) the rightmost entry of X-Forwarded-For that none of them has; from
 * any other peer the header is only a claim, and the peer is the client. An entry that is no address ends the search:
 * what stands left of it was written by nobody who is trusted.
 */
export const clientAddressReader = (trustedProxies: readonly string[]): ClientAddress => {
  if (trustedProxies.length === 0) return ({ peerAddress }) => plain(peerAddress);
  const list = trustedList(trustedProxies);
  const isTrusted = (address: string): boolean => list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return (request) => {
    let client = plain(request.peerAddress);
    if (isIP(client) === 0 || !isTrusted(client)) return client;
    for (const entry of (request.header('x-forwarded-for') ?? '').split(',').reverse()) {
      const address = addressIn(entry);
      if (address === null) return client;
      client = address;
      if (!isTrusted(client)) return client;
    }
    return client;
  };
};
