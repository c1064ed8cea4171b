/** What a server says with a 401 or a 403 of the tokens that it wants, and of where they come from. */
export interface BearerChallenge {
  readonly error: string | null;
  readonly resourceMetadata: string | null;
  readonly scope: string | null;
}

// RFC 9110, section 11.2: a token or a quoted string.
const parameter = /([a-z0-9_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;
const bearer = /(?:^|,)\s*bearer\s+(.*)$/is;
// A further scheme with parameters of its own.
const nextScheme = /,\s*[a-z0-9!#$%&'*+.^_`|~-]+\s+[a-z0-9_]+\s*=/i;
const maxLength = 8192;

/** Reads `WWW-Authenticate`; of several challenges the one of the scheme Bearer. */
export const bearerChallenge = (header: string | null): BearerChallenge => {
  const all = bearer.exec((header ?? '').slice(0, maxLength))?.[1] ?? '';
  const end = nextScheme.exec(all)?.index;
  const own = end === undefined ? all : all.slice(0, end);
  const values = new Map<string, string>();
  for (const [, name = '', quoted, plain] of own.matchAll(parameter))
    values.set(name.toLowerCase(), quoted?.replaceAll(/\\(.)/g, '$1') ?? plain ?? '');
  const value = (name: string): string | null => values.get(name) ?? null;
  return { error: value('error'), resourceMetadata: value('resource_metadata'), scope: value('scope') };
};
