import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface SignedRequest {
  readonly method: string;
  /** As it came, with its query. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex');
const mac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest();

/** RFC 3986, as Signature Version 4 wants it. */
const encoded = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * Signature Version 4 in the `Authorization` header, with nothing of the client's own code: the name of what is wrong as
 * the protocol has it, or null.
 */
export const signatureFault = (
  { method, url, headers }: SignedRequest,
  keys: Readonly<Record<string, string>>,
  ownRegion: string,
): string | null => {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? '',
    );
  if (match === null) return 'AccessDenied';
  const [, keyId = '', day = '', region = '', signedHeaders = '', signature = ''] = match;
  if (region !== ownRegion) return 'AuthorizationHeaderMalformed';
  const secret = keys[keyId];
  if (secret === undefined) return 'InvalidAccessKeyId';
  const { pathname, searchParams } = new URL(url, 'http://host');
  const query = [...searchParams]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .sort()
    .join('&');
  const lines = signedHeaders.split(';').map((name) => `${name}:${String(headers[name] ?? '').trim()}\n`);
  const request = [
    method,
    pathname
      .split('/')
      .map((part) => encoded(decodeURIComponent(part)))
      .join('/'),
    query,
    lines.join(''),
    signedHeaders,
    String(headers['x-amz-content-sha256']),
  ].join('\n');
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', String(headers['x-amz-date']), scope, hash(request)].join('\n');
  const key = mac(mac(mac(mac(`AWS4${secret}`, day), region), 's3'), 'aws4_request');
  return timingSafeEqual(mac(key, text), Buffer.from(signature, 'hex')) ? null : 'SignatureDoesNotMatch';
};
