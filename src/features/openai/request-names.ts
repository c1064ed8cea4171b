import { AcpError } from '../../contract/errors.ts';

/** Where a request has what a member of a run holds, by the path of that; null: under no other name. */
export type RequestNames = (path: string) => string | null;

const parameters = /^parameters\./;
const attachments = /^attachmentIds\b.*$/;

/** What requests of both kinds share; `said` is the member that holds what is said. */
export const namesOf =
  (said: 'messages' | 'input'): RequestNames =>
  (path) => {
    if (parameters.test(path)) return path.replace(parameters, 'metadata.param.');
    return attachments.test(path) ? said : null;
  };

/** Rejects with an error that names members as the request does: its caller has never seen those of a run. */
export const inTermsOf = async <T>(named: RequestNames, work: Promise<T>): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof AcpError) || error.details.errors === undefined) throw error;
    const { code, message, details } = error;
    const [first] = error.details.errors;
    const errors = error.details.errors.map((each) => ({ ...each, path: named(each.path) ?? each.path }));
    // A message that is about one member begins with its name.
    const isNamed = first !== undefined && message.startsWith(`${first.path} `);
    const told = isNamed ? `${errors[0]?.path}${message.slice(first.path.length)}` : message;
    throw new AcpError(code, told, { cause: error, details: { ...details, errors } });
  }
};
