import type { CallerRequest } from '../../core/caller-request.ts';

const octet = '(?:25[0-5]|2[0-4]\\d|1?\\d?\\d)';
const loopbackIpv4 = `127\\.${octet}\\.${octet}\\.${octet}`;
const loopbackName = `(?:localhost|${loopbackIpv4}|\\[::1\\])(?::\\d{1,5})?`;

// An IPv4 peer of a dual-stack socket is reported in its mapped form.
const loopbackPeer = new RegExp(`^(?:::1|(?:::ffff:)?${loopbackIpv4})$`, 'i');
const loopbackHost = new RegExp(`^${loopbackName}$`, 'i');
const loopbackOrigin = new RegExp(`^https?://${loopbackName}$`, 'i');

const isLoopbackAddress = (address: string): boolean => address === '127.0.0.1' || loopbackPeer.test(address);

/** True for a `Host` header of `localhost`, 127.0.0.0/8 or `[::1]`, with or without a port. */
export const isLoopbackHost = (host: string): boolean => loopbackHost.test(host);

/** True for an http(s) origin on such a host; `null` and other schemes are foreign. */
export const isLoopbackOrigin = (origin: string): boolean => loopbackOrigin.test(origin);

/** A forwarding header makes a caller remote, whatever it says: a proxy's own loopback address proves nothing. */
export const isRemote = (request: CallerRequest): boolean =>
  !isLoopbackAddress(request.peerAddress) ||
  request.header('x-forwarded-for') !== undefined ||
  request.header('forwarded') !== undefined ||
  request.header('x-real-ip') !== undefined;
