import { AcpError } from '../../contract/errors.ts';

/** Members of a run as the service calls them, and where a request of this API has what they hold. */
const names: readonly (readonly [RegExp, (place: RequestPlace) => string])[] = [
  [/^parameters\./, () => 'metadata.param.'],
  [/^(?:toolResults|attachmentIds|message)\b.*$/, (place) => place],
  [/^sessionId$/, () => 'conversation'],
];

/** The member that holds what is said. */
export type RequestPlace = 'messages' | 'input';

const renamed = (path: string, place: RequestPlace): string => {
  for (const [pattern, name] of names) if (pattern.test(path)) return path.replace(pattern, name(place));
  return path;
};

/** Rejects with an error that names members as the request does: its caller has never seen those of a run. */
export const inTermsOf = async <T>(place: RequestPlace, work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof AcpError) || error.details.errors === undefined) throw error;
    const { code, message, details } = error;
    const [first] = error.details.errors;
    const errors = error.details.errors.map((each) => ({ ...each, path: renamed(each.path, place) }));
    // A message that is about one member begins with its name.
    const isNamed = first !== undefined && message.startsWith(`${first.path} `);
    const told = isNamed ? `${errors[0]?.path}${message.slice(first.path.length)}` : message;
    throw new AcpError(code, told, { cause: error, details: { ...details, errors } });
  }
};
