import type { CallerRequest } from '../../core/caller/caller-request.ts';

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

/** What proxies and networks for content add beside the `X-Forwarded-` headers; no client of its own accord does. */
const forwardingHeaders = new Set([
  'forwarded',
  'via',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'x-original-host',
  'x-envoy-external-address',
  'x-azure-clientip',
  'x-appengine-user-ip',
  'true-client-ip',
  'fastly-client-ip',
  'cf-connecting-ip',
  'cdn-loop',
]);

const tellsOfProxy = (name: string): boolean => name.startsWith('x-forwarded') || forwardingHeaders.has(name);

/**
 * A forwarding header makes a caller remote, whatever it says, and so does HTTP/1.0, which proxies speak and no local
 * client does: a proxy's own loopback address proves nothing.
 */
export const isRemote = (request: CallerRequest): boolean =>
  !isLoopbackAddress(request.peerAddress) || request.httpVersion !== '1.1' || request.hasHeader(tellsOfProxy);

/**
 * False for what a browser asks for on behalf of another site, images and links without an `Origin` included. Clients
 * that are no browsers do not send the header. A value that is not known is refused.
 */
export const isOwnFetch = (request: CallerRequest): boolean => {
  const site = request.header('sec-fetch-site');
  return site === undefined || site === 'same-origin' || site === 'none';
};
