import { AcpError } from '../contract/errors.ts';

/** Path of a request target without its query. Proxies may send the absolute form. */
export const targetPath = (url: string): string => {
  const target = url.startsWith('/') ? url : url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '');
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
};

/** A path without the slash at its end, which many clients send. */
export const withoutFinalSlash = (path: string): string =>
  path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path;

/** The target with the slashes of a last parameter encoded, as the router takes it; `starts` are what stands before such ones. */
export const oneParameter = (url: string, starts: readonly string[]): string => {
  const start = starts.find((candidate) => url.startsWith(candidate));
  if (start === undefined) return url;
  const query = url.indexOf('?');
  const end = query === -1 ? url.length : query;
  return start + withoutFinalSlash(url.slice(start.length, end)).replaceAll('/', '%2F') + url.slice(end);
};

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    if (cause instanceof URIError)
      throw new AcpError('validation-failed', 'The query is not correctly percent-encoded.');
    throw cause;
  }
};

/**
 * Parameters of a query string. A name that is repeated, or is one of `lists`, has an array of values: nothing that a
 * caller sends is dropped. Throws `validation-failed` for wrong percent-encoding.
 */
export const parseQuery = (url: string, lists: ReadonlySet<string>): Record<string, string | string[]> => {
  const query: Record<string, string | string[]> = Object.create(null);
  const start = url.indexOf('?');
  if (start === -1) return query;
  for (const pair of url.slice(start + 1).split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : decode(pair.slice(equals + 1));
    const earlier = query[name];
    if (Array.isArray(earlier)) earlier.push(value);
    else if (earlier !== undefined) query[name] = [earlier, value];
    else query[name] = lists.has(name) ? [value] : value;
  }
  return query;
};
