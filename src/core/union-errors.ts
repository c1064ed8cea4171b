/** An error as the library of schemas reports it. */
export interface RawError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: Record<string, unknown>;
}

const isBranchType = ({ keyword, schemaPath }: RawError): boolean =>
  keyword === 'type' && /\/anyOf\/\d+$/.test(schemaPath);

const typeOf = ({ message }: RawError): string => message.replace(/^must be (?:either )?/, '');

const listed = (types: readonly string[]): string =>
  types.length < 2 ? types.join() : `${types.slice(0, -1).join(', ')} or ${types.at(-1)}`;

/**
 * What is wrong with a value that may have one of several types: where it has the type of one, what does not fit that one,
 * and else all types that it may have. The library reports every type of which it is none, the first one first.
 */
export const unionErrors = (errors: readonly RawError[]): readonly RawError[] => {
  const unions = new Set(errors.flatMap((error) => (isBranchType(error) ? [error.instancePath] : [])));
  if (unions.size === 0) return errors;
  const isFit = (place: string): boolean =>
    errors.some(
      ({ instancePath, keyword }) =>
        instancePath.startsWith(`${place}/`) || (instancePath === place && keyword !== 'type' && keyword !== 'anyOf'),
    );
  const fits = new Map([...unions].map((place) => [place, isFit(place)]));
  const told = new Set<string>();
  return errors.flatMap((error): RawError[] => {
    const { instancePath: place, keyword } = error;
    const fit = fits.get(place);
    if (fit === undefined || (keyword !== 'type' && keyword !== 'anyOf')) return [error];
    if (fit || told.has(place) || !isBranchType(error)) return [];
    told.add(place);
    const types = errors.filter((other) => other.instancePath === place && isBranchType(other)).map(typeOf);
    return [{ ...error, message: `must be ${listed([...new Set(types)])}` }];
  });
};
