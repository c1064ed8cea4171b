import type { Command } from 'commander';
import { AcpError, type FieldError } from '../contract/errors.ts';
import { readText } from './files/read-body.ts';
import type { Session } from './session.ts';

/** Where a command takes its input from. */
export interface InputPlaces {
  /** Options such as `--kind`, and arguments such as `<name>`, by the property that they fill. */
  readonly options: ReadonlyMap<string, string>;
  /** The file of `-f`; undefined: none was given. */
  readonly file: string | undefined;
  /** Whether the command takes one. */
  readonly takesFile: boolean;
}

const memberOf = ({ path }: FieldError): string => path.split(/[.[]/, 1)[0] ?? '';

/** `kind is --kind, name is --name; or members of the file of -f`. */
const optionHint = (errors: readonly FieldError[], { options, takesFile }: InputPlaces): string | null => {
  const names = [...new Set(errors.map(memberOf))].flatMap((member) => {
    const option = options.get(member);
    return option === undefined ? [] : [`${member} is ${option}`];
  });
  if (names.length === 0) return null;
  return `${names.join(', ')}${takesFile ? `; or ${names.length === 1 ? 'a member' : 'members'} of the file of -f` : ''}.`;
};

/** `expiresAt` is given by `--expires`, `scopes` by `--scope`: an option of a hand-written command may be the shorter word. */
const fillsMember = (name: string, member: string): boolean => member.toLowerCase().startsWith(name.toLowerCase());

/** The option or argument of a hand-written command that fills a property. */
const inputFor = ({ registeredArguments, options }: Command, member: string): string | undefined => {
  const inputs = [
    ...registeredArguments.map((argument) => ({ name: argument.name(), flag: `<${argument.name()}>` })),
    ...options.map((option) => ({ name: option.attributeName(), flag: option.long ?? option.flags })),
  ];
  return inputs.find(({ name }) => fillsMember(name.replaceAll('-', ''), member))?.flag;
};

/** A refusal of what a hand-written command was given, with the option or argument of each refused property. */
export const namedInputFault = (error: unknown, command: Command): unknown => {
  // A file is where such a command has its input from, and its own report says at which line.
  if (!(error instanceof AcpError) || command.options.some((option) => option.attributeName() === 'file')) return error;
  const { errors = [], hint: ownHint } = error.details;
  const named = errors.map(memberOf).flatMap((member): [string, string][] => {
    const input = inputFor(command, member);
    return input === undefined ? [] : [[member, input]];
  });
  const hint = optionHint(errors, { options: new Map(named), file: undefined, takesFile: false });
  if (hint === null || ownHint !== undefined) return error;
  return new AcpError(error.code, error.message, { cause: error, details: { ...error.details, hint } });
};

/** Each property with file and line. */
const inFile = async (
  file: string,
  errors: readonly FieldError[],
  terminal: Session['terminal'],
): Promise<readonly FieldError[]> => {
  const { parseDefinitionDocuments } = await import('../core/documents/definition-documents.ts');
  const [document] = parseDefinitionDocuments(await readText(file, terminal), file).documents;
  if (document === undefined) return errors;
  return errors.map(({ path, message }) => {
    const place = `${file}:${document.lineOf(path)}`;
    return { path: path === '' ? place : `${place}: ${path}`, message };
  });
};

/** A refusal of the input, with the place of each refused property; any other error as it is. */
export const placedInputFault = async (
  error: unknown,
  places: InputPlaces,
  { terminal, globals }: Pick<Session, 'terminal' | 'globals'>,
): Promise<unknown> => {
  if (globals.json || !(error instanceof AcpError)) return error;
  const { errors = [], hint: ownHint } = error.details;
  if (errors.length === 0 || ownHint !== undefined) return error;
  const { file } = places;
  const isFile = file !== undefined && file !== '-';
  const placed = isFile ? await inFile(file, errors, terminal) : errors;
  const hint = isFile ? null : optionHint(errors, places);
  if (!isFile && hint === null) return error;
  const [first] = placed;
  const [original] = errors;
  const message =
    first !== undefined && original !== undefined && original.path !== '' && error.message.startsWith(original.path)
      ? `${first.path}${error.message.slice(original.path.length)}`
      : error.message;
  const details = { ...error.details, errors: placed, ...(hint === null ? {} : { hint }) };
  return new AcpError(error.code, message, { cause: error, details });
};
