import { isIP } from 'node:net';
import { isAbsolute, resolve } from 'node:path';
import { isJsonPointer } from '../documents/json-pointer.ts';
import { scalarKind, type ValueKind } from './value-kind.ts';

interface TextRules {
  readonly label?: string;
  readonly expected?: string;
  /** Must match as a whole. */
  readonly pattern?: RegExp;
  readonly max?: number;
  readonly empty?: boolean;
}

/** Text, not empty unless said so. Typed values must be text: a bare `1.10` would lose its last digit. */
export const text = (rules: TextRules = {}): ValueKind<string> => {
  const limit = rules.max === undefined ? '' : ` of at most ${rules.max} characters`;
  return scalarKind({
    label: rules.label ?? 'text',
    expected: rules.expected ?? `text${limit}${rules.empty === true ? '' : ' that is not empty'} (quote numbers)`,
    read(value) {
      if (typeof value !== 'string' || (value === '' && rules.empty !== true)) return undefined;
      const fits = (rules.max === undefined || value.length <= rules.max) && !value.includes('\0');
      return fits && (rules.pattern === undefined || rules.pattern.test(value)) ? value : undefined;
    },
  });
};

/** Text that can stand in a header: visible ASCII characters without spaces. */
export const credential = (): ValueKind<string> =>
  text({ pattern: /^[\x21-\x7e]+$/, expected: 'text of visible ASCII characters without spaces' });

export const tenantSlug = (): ValueKind<string> =>
  text({ label: 'tenant slug', pattern: /^[A-Za-z0-9._-]{1,64}$/, expected: '1 to 64 of A-Z a-z 0-9 . _ -' });

export const lane = (): ValueKind<string> =>
  text({ label: 'lane', pattern: /^[a-z0-9][a-z0-9._-]{0,63}$/, expected: 'a lane name (1 to 64 of a-z 0-9 . _ -)' });

export const jsonPointer = (max: number): ValueKind<string> =>
  scalarKind({
    label: 'JSON Pointer',
    expected: `a JSON Pointer (RFC 6901) of at most ${max} characters, such as /customer/id`,
    read: (value) => (typeof value === 'string' && value.length <= max && isJsonPointer(value) ? value : undefined),
  });

/** Start of an SQL name: only what needs no quoting anywhere. */
export const sqlName = (max: number): ValueKind<string> =>
  text({
    label: `[a-z][a-z0-9_]{0,${max - 1}}`,
    pattern: new RegExp(`^[a-z][a-z0-9_]{0,${max - 1}}$`),
    expected: `1 to ${max} of a-z 0-9 _ that start with a letter`,
  });

export const schemaName = (): ValueKind<string> =>
  text({
    label: '[a-z][a-z0-9_]{0,62}',
    pattern: /^(?!pg_)[a-z][a-z0-9_]{0,62}$/,
    expected: "1 to 63 of a-z 0-9 _ that start with a letter, and not with pg_, which is the server's own",
  });

export const headerName = (): ValueKind<string> =>
  text({ label: 'header name', pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, expected: 'an HTTP header name' });

export const mediaType = (options: { readonly wildcard?: boolean } = {}): ValueKind<string> =>
  text({
    label: 'media type',
    pattern:
      options.wildcard === true ? /^[a-z0-9][\w.+-]*\/(\*|[a-z0-9][\w.+-]*)$/i : /^[a-z0-9][\w.+-]*\/[a-z0-9][\w.+-]*$/,
    expected:
      options.wildcard === true ? 'a media type such as image/png or audio/*' : 'a media type such as audio/mpeg',
  });

/** `<w>x<h>` in pixels. */
export const imageSize = (): ValueKind<string> =>
  text({ label: '<w>x<h>', pattern: /^[1-9]\d{0,4}x[1-9]\d{0,4}$/, expected: 'a size such as 1024x1024' });

/** Where the name of a secret must start, such as `Service:ProviderKeys:`. */
export const keyPrefix = (): ValueKind<string> =>
  text({
    label: 'key prefix',
    pattern: /^Service:(?:.*:)?$/i,
    expected: 'a prefix that starts with "Service:" and ends with ":"',
  });

export const mountPrefix = (): ValueKind<string> =>
  text({
    label: 'empty or /path',
    empty: true,
    pattern: /^(\/[A-Za-z0-9._~-]+)*$/,
    expected: 'empty text, or a path such as /acp without a final slash',
  });

export const routePath = (): ValueKind<string> =>
  text({
    label: 'path',
    pattern: /^(\/[A-Za-z0-9._~-]+)+$/,
    expected: 'a path such as /health/live without a final slash',
  });

/** The 32 bytes of an AES-256 key. */
export const encryptionKey = (): ValueKind<string> =>
  scalarKind({
    label: 'base64 of 32 bytes',
    expected: 'base64 of exactly 32 bytes',
    read(value) {
      const fits = typeof value === 'string' && /^[A-Za-z0-9+/]{43}=$/.test(value);
      return fits && Buffer.from(value, 'base64').toString('base64') === value ? value : undefined;
    },
  });

const parseUrl = (value: unknown): URL | undefined =>
  typeof value === 'string' && /^https?:\/\//i.test(value) && URL.canParse(value) ? new URL(value) : undefined;

/** An absolute http(s) URL without user information: this page shows it, and credentials have keys of their own. */
export const url = (): ValueKind<string> =>
  scalarKind({
    label: 'URL',
    expected: 'an absolute http or https URL without user name and fragment',
    read(value) {
      const parsed = parseUrl(value);
      const fits = parsed !== undefined && parsed.username === '' && parsed.password === '' && parsed.hash === '';
      return fits ? String(value) : undefined;
    },
  });

/** True for a host name of this machine, as a URL has it. */
export const isLoopbackName = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127(?:\.\d{1,3}){3}$/.test(hostname);

/** Issuer of tokens, kept as it is written: tokens must name it to the letter. */
export const issuer = (): ValueKind<string> =>
  scalarKind({
    label: 'https URL',
    expected: 'an https URL without user name, query and fragment (http for an address of this machine only)',
    read(value) {
      const parsed = parseUrl(value);
      const fits =
        parsed !== undefined &&
        `${parsed.username}${parsed.password}` === '' &&
        !/[?#]/.test(String(value)) &&
        (parsed.protocol === 'https:' || isLoopbackName(parsed.hostname));
      return fits ? String(value) : undefined;
    },
  });

/** Scheme, host and port and nothing else; shown and returned as browsers write it. */
export const origin = (options: { readonly label?: string } = {}): ValueKind<string> =>
  scalarKind({
    label: options.label ?? 'origin',
    expected: 'an http or https address of host and port only, such as http://127.0.0.1:7070',
    read(value) {
      const parsed = parseUrl(value);
      const bare = parsed !== undefined && [parsed.origin, `${parsed.origin}/`].includes(parsed.href);
      return bare && !/[*\\\s]/.test(String(value)) && !/[?#]$/.test(String(value)) ? parsed.origin : undefined;
    },
  });

/** An IP address, alone or with a prefix length. */
export const addressRange = (): ValueKind<string> =>
  scalarKind({
    label: 'address or CIDR',
    expected: 'an IP address or a range such as 10.0.0.0/8',
    read(value) {
      const [, address = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(String(value)) ?? [];
      const version = isIP(address);
      return version !== 0 && Number(bits ?? 0) <= (version === 4 ? 32 : 128) ? String(value) : undefined;
    },
  });

export const timeZone = (): ValueKind<string> =>
  scalarKind({
    label: 'IANA name',
    expected: 'an IANA time zone such as Europe/Berlin',
    read(value) {
      // Offsets such as +02:00 are refused: they know no daylight saving.
      if (typeof value !== 'string' || !/^[A-Za-z]/.test(value)) return undefined;
      try {
        return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone && value;
      } catch {
        // The constructor throws for names it does not know; that is the answer.
        return undefined;
      }
    },
  });

/** A file or folder; relative to the folder of the file that names it, else to the working directory. */
export const path = (options: { readonly absolute?: boolean; readonly label?: string } = {}): ValueKind<string> =>
  scalarKind({
    label: options.label ?? (options.absolute === true ? 'absolute path' : 'path'),
    expected: options.absolute === true ? 'an absolute path' : 'a path',
    read(value, _typed, folder) {
      if (typeof value !== 'string' || value === '' || value.includes('\0')) return undefined;
      return options.absolute === true ? (isAbsolute(value) ? value : undefined) : resolve(folder, value);
    },
  });

/** A database file, or a `file:` URI; relative ones are resolved as paths are. `:memory:` is left for a later check. */
export const sqliteLocation = (): ValueKind<string> =>
  scalarKind({
    label: 'path or URI',
    expected: 'the path of a database file or a file: URI',
    read(value, _typed, folder) {
      if (typeof value !== 'string' || value.trim() === '' || value.includes('\0')) return undefined;
      if (isInMemory(value)) return value;
      const uri = /^file:([^?#]*)(.*)$/i.exec(value);
      if (uri === null) return resolve(folder, value);
      const [, file = '', query = ''] = uri;
      return file.startsWith('/') ? value : `file:${resolve(folder, file)}${query}`;
    },
  });

/** True for SQLite's in-memory notations, shared or not. */
export const isInMemory = (location: string): boolean =>
  /^:memory:$|^file::memory:|[?&]mode=memory\b/i.test(location.trim());
