import ipaddr from 'ipaddr.js';

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number];

const ranges = (...blocks: string[]): Range[] => blocks.map((block) => ipaddr.parseCIDR(block));

/**
 * What IANA's IPv4 special-purpose address registry lists as not globally reachable (this host, private, shared,
 * link-local, documentation, benchmark, reserved), the former 6to4 relays (RFC 7526), and multicast.
 */
const privateV4 = ranges(
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
);

/**
 * What IANA's IPv6 special-purpose address registry lists as not globally reachable: the NAT64 prefix of private networks
 * (64:ff9b:1::/48), discard-only (100::/64) and dummy (100:0:0:1::/64) prefixes, benchmark, identifiers that no router knows
 * (ORCHID, 2001:10::/28 and 2001:20::/28), documentation, segment routing (5f00::/16); and site-local ones of old (fec0::/10).
 */
const privateV6 = ranges(
  '::/128',
  '::1/128',
  '64:ff9b:1::/48',
  '100::/64',
  '100:0:0:1::/64',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
  '2001:db8::/32',
  '3fff::/20',
  '5f00::/16',
);

interface Carrier {
  readonly block: Range;
  /** First bytes of the IPv4 addresses that it carries. */
  readonly offsets: readonly number[];
  /** Teredo writes the client's address inverted, from this byte on. */
  readonly inverted?: number;
}

const carrier = (block: string, offsets: readonly number[], inverted?: number): Carrier => ({
  block: ipaddr.parseCIDR(block),
  offsets,
  ...(inverted === undefined ? {} : { inverted }),
});

/** IPv6 forms that lead to an IPv4 address: compatible, mapped, translated, NAT64, 6to4, Teredo (server and client). */
const carriers = [
  carrier('::/96', [12]),
  carrier('::ffff:0:0/96', [12]),
  carrier('::ffff:0:0:0/96', [12]),
  carrier('64:ff9b::/96', [12]),
  carrier('2002::/16', [2]),
  carrier('2001::/32', [4, 12], 12),
];

const within = (address: ipaddr.IPv4 | ipaddr.IPv6, blocks: readonly Range[]): boolean =>
  blocks.some(([network, bits]) => address.match(network, bits));

const carriedPrivate = (address: ipaddr.IPv6): boolean => {
  const bytes = address.toByteArray();
  return carriers
    .filter(({ block: [network, bits] }) => address.match(network, bits))
    .some(({ offsets, inverted }) =>
      offsets.some((offset) => {
        const carried = bytes.slice(offset, offset + 4).map((byte) => (offset === inverted ? byte ^ 0xff : byte));
        return within(new ipaddr.IPv4(carried), privateV4);
      }),
    );
};

/** Reserved for protocols. Teredo (2001::/32), the first of them, carries an IPv4 address; the registry lists the others as global. */
const protocolAssignments = ranges('2001::/23');
const globalAssignments = ranges(
  '2001::/32',
  '2001:1::1/128',
  '2001:1::2/128',
  '2001:1::3/128',
  '2001:3::/32',
  '2001:4:112::/48',
  '2001:30::/28',
);

const isReservedAssignment = (address: ipaddr.IPv6): boolean =>
  within(address, protocolAssignments) && !within(address, globalAssignments);

/** True for an address of the public internet, in dotted or IPv6 notation. What is no address is not public. */
export const isPublicAddress = (text: string): boolean => {
  if (!ipaddr.isValid(text)) return false;
  const address = ipaddr.parse(text);
  if (address instanceof ipaddr.IPv4) return !within(address, privateV4);
  return !within(address, privateV6) && !isReservedAssignment(address) && !carriedPrivate(address);
};
