const mask = '***';

/** Names that hold a reference to a secret, not the secret. */
const reference = /configuration(?:key|name|prefix)$/;
const secretPart = /apikey|authorization|password|secret/;

// Deeper than any definition; without a bound the recursion would end where the stack does.
const maxDepth = 200;

/** `accessToken` and `ACCESS_TOKEN` → access, token. */
const words = (name: string): string[] =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/);

// A word that ends in `token` is one written without a separator: accesstoken. The plural counts model tokens.
const isToken = (name: string): boolean => words(name).some((word) => word.endsWith('token'));

/** True for a property whose value must not be shown. */
export const isSecretName = (name: string): boolean => {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (reference.test(plain)) return false;
  return secretPart.test(plain) || isToken(name);
};

const isHeaders = (name: string): boolean => name.toLowerCase().endsWith('headers');

const entriesOf = (value: object): [string, unknown][] => Object.entries(value);

/** Every value of a map of headers, or of a list of `{name, value}`; names stay. */
const maskHeaders = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map((item: unknown) => (typeof item === 'object' ? maskNamed(item) : mask));
  if (typeof value !== 'object' || value === null) return value === null ? null : mask;
  return Object.fromEntries(entriesOf(value).map(([name]) => [name, mask]));
};

const maskNamed = (item: object | null): unknown =>
  item === null
    ? null
    : Object.fromEntries(entriesOf(item).map(([name, value]) => [name, name === 'name' ? value : mask]));

const maskMember = (name: string, value: unknown, depth: number): unknown => {
  if (isHeaders(name)) return maskHeaders(value);
  if (!isSecretName(name) || value === null || typeof value === 'boolean') return maskValue(value, depth);
  return mask;
};

const maskValue = (value: unknown, depth: number): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= maxDepth) return mask;
  if (Array.isArray(value)) return value.map((item: unknown) => maskValue(item, depth + 1));
  return Object.fromEntries(
    entriesOf(value)
      .filter(([, member]) => member !== undefined)
      .map(([name, member]) => [name, maskMember(name, member, depth + 1)]),
  );
};

/** JSON text of an entity with `"***"` in place of secrets and header values, at any depth. */
export const maskedJson = (entity: object | null): string | null =>
  entity === null ? null : JSON.stringify(maskValue(entity, 0));
