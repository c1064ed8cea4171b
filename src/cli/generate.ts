import { type Command, Option } from 'commander';
import type { TSchema } from 'typebox';
import { callOperation } from '../client/client.ts';
import type { ApiTable, Operation } from '../contract/operation.ts';
import { isRecord } from '../contract/record.ts';
import { safeLine } from '../text/text-width.ts';
import {
  type CommandHost,
  collect,
  commandGroup,
  covers,
  type Invocation,
  splitPair,
  toNumber,
} from './command-host.ts';
import { readBody } from './files/read-body.ts';
import { placedInputFault } from './input-faults.ts';
import type { Terminal } from './output/terminal.ts';

/** The members of a JSON schema that decide how an option looks, and which words it takes. */
export interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly anyOf?: readonly Shape[];
  readonly description?: string;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly patternProperties?: Readonly<Record<string, Shape>>;
}

type Part = 'query' | 'headers' | 'body';

/** One option of a generated command, and the member of the call that it fills. */
interface MemberOption {
  readonly part: Part;
  readonly member: string;
  readonly option: Option;
  /** Says false where the option says true. */
  readonly negation?: Option;
  readonly read: (value: unknown) => unknown;
}

export const kebab = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();

/** `{runId}` of a path → `run-id` of a usage line, in order. */
const pathParameters = (path: string): string[] => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');

const typesOf = (shape: Shape): readonly string[] =>
  (typeof shape.type === 'string' ? [shape.type] : (shape.type ?? [])).filter((type) => type !== 'null');

const words = (shape: Shape): string[] => (shape.enum ?? []).filter((word) => word !== null).map(String);

/** As the help writes it: no capital at the start, abbreviations apart. */
const uncapitalized = (text: string): string => text.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());

const describe = (shape: Shape): string =>
  [uncapitalized(shape.description ?? ''), words(shape).length > 0 ? `(${words(shape).join(', ')})` : '']
    .filter((text) => text !== '')
    .join(' ');

const asIs = (value: unknown): unknown => value;

/** `name=value` as often as there are names; a name that is given again counts as it was given last. */
const toMap =
  (flag: string) =>
  (pairs: unknown): unknown =>
    Object.fromEntries((pairs as readonly string[]).map((pair) => splitPair(pair, `${flag} takes name=value`)));

/** What the values of a map are; undefined: it is none, or none of texts. */
const textsOf = ({ patternProperties, properties }: Shape): Shape | undefined => {
  const [values] = properties === undefined ? Object.values(patternProperties ?? {}) : [];
  return values !== undefined && (values.enum !== undefined || typesOf(values).includes('string')) ? values : undefined;
};

/** The option of a scalar, of a list of scalars, or of a map of texts; null for what only a file can give. */
const memberOption = (part: Part, member: string, shape: Shape, taken: ReadonlySet<string>): MemberOption | null => {
  const name = taken.has(kebab(member)) ? `${part}-${kebab(member)}` : kebab(member);
  const flag = `--${name}`;
  const [type] = typesOf(shape);
  if (type === 'boolean') {
    const option = new Option(flag, describe(shape));
    // Left out it is false, unless a file says something else.
    if (part !== 'body' && shape.default === false) return { part, member, option, read: asIs };
    // By default, or by its file, it can be true, or neither.
    option.description = `${option.description} (false: --no-${name})`.trim();
    return { part, member, option, negation: new Option(`--no-${name}`, 'false').hideHelp(), read: asIs };
  }
  if (type === 'array') {
    const items = shape.items ?? {};
    if (!isScalar(items)) return null;
    const option = new Option(`${flag} <value>`, `${describe({ ...items, ...shape })} (repeatable)`.trim()).argParser(
      collect,
    );
    return { part, member, option, read: asIs };
  }
  const texts = textsOf(shape);
  if (texts !== undefined) {
    const text = `${describe({ ...texts, ...shape })} (repeatable)`.trim();
    return { part, member, option: new Option(`${flag} <name=value>`, text).argParser(collect), read: toMap(flag) };
  }
  if (!isScalar(shape)) return null;
  const isNumber = type === 'integer' || type === 'number';
  const option = new Option(`${flag} <${isNumber ? 'n' : 'value'}>`, describe(shape));
  return { part, member, option, read: isNumber ? toNumber(flag) : asIs };
};

const isScalar = (shape: Shape): boolean =>
  shape.enum !== undefined || typesOf(shape).some((type) => ['string', 'integer', 'number', 'boolean'].includes(type));

const members = (schema: TSchema | undefined): [string, Shape][] =>
  Object.entries((schema as Shape | undefined)?.properties ?? {});

const memberOptions = (operation: Operation, reserved: ReadonlySet<string>): MemberOption[] => {
  const taken = new Set([...reserved, 'file', ...pathParameters(operation.path).map(kebab)]);
  const options: MemberOption[] = [];
  for (const part of ['query', 'headers', 'body'] as const)
    for (const [member, shape] of members(operation[part])) {
      // A body's own `name` repeats the path; it is filled in from there.
      if (part === 'body' && pathParameters(operation.path).includes(member)) continue;
      const made = memberOption(part, member, shape, taken);
      if (made === null) continue;
      taken.add(kebab(member));
      options.push(made);
    }
  return options;
};

const valuesOf = (
  part: Part,
  options: readonly MemberOption[],
  { options: values }: Invocation,
): Record<string, unknown> =>
  Object.fromEntries(
    options
      .filter((entry) => entry.part === part && values[entry.option.attributeName()] !== undefined)
      .map((entry) => [entry.member, entry.read(values[entry.option.attributeName()])]),
  );

/** The file's value with the options laid over it; members that repeat the path are filled in when they are missing. */
const bodyOf = async (
  operation: Operation,
  params: Readonly<Record<string, unknown>>,
  own: Readonly<Record<string, unknown>>,
  file: unknown,
  terminal: Terminal,
): Promise<unknown> => {
  if (operation.body === undefined) return undefined;
  const base = typeof file === 'string' ? await readBody(file, terminal) : {};
  if (!isRecord(base)) return base;
  const fromPath = Object.fromEntries(
    members(operation.body)
      .filter(([member]) => params[member] !== undefined)
      .map(([member]) => [member, params[member]]),
  );
  return { ...fromPath, ...base, ...own };
};

/** The sentence of a success that has no body to print, such as `Deleted quota 0199….` */
const doneLine = ({ cli }: Operation, params: Readonly<Record<string, unknown>>): string =>
  (cli?.done ?? 'Done.').replace(/\{(\w+)\}/g, (_whole, name: string) => safeLine(String(params[name])));

const foundExitCode = 1;

const exitCodeOf = ({ cli }: Operation, answer: unknown): number => {
  const failure = cli?.failure;
  if (failure === undefined || !Array.isArray(answer)) return 0;
  return answer.some((row) => isRecord(row) && row[failure.member] === failure.value) ? foundExitCode : 0;
};

const commandWords = (feature: string, verb: string, operation: Operation): string[] =>
  (operation.cli?.command ?? `${feature} ${verb}`).split(' ');

const generate = (parent: Command, host: CommandHost, name: string, id: string, operation: Operation): void => {
  const reserved = new Set(host.program.options.map((option) => option.name()).concat('help', 'version', 'color'));
  const parameters = pathParameters(operation.path);
  const options = memberOptions(operation, reserved);
  const command = parent.command(name).description(uncapitalized(operation.summary));
  for (const parameter of parameters) command.argument(`<${kebab(parameter)}>`);
  if (operation.body !== undefined)
    command.option('-f, --file <path>', 'body as YAML or JSON; `-` is the standard input');
  for (const { option, negation } of options) {
    command.addOption(option);
    if (negation !== undefined) command.addOption(negation);
  }
  covers(command, id);
  command.action(
    host.act(async (session, invocation) => {
      const params = Object.fromEntries(parameters.map((parameter, index) => [parameter, invocation.args[index]]));
      const own = valuesOf('body', options, invocation);
      const file = invocation.options['file'] as string | undefined;
      const body = await bodyOf(operation, params, own, file, session.terminal);
      const call = session.connected(async ({ transport }) => {
        const reply = await callOperation(transport, id, operation, {
          params,
          query: { ...operation.cli?.query, ...valuesOf('query', options, invocation) },
          headers: valuesOf('headers', options, invocation),
          body,
          signal: session.terminal.closed,
        });
        if (reply.frames !== undefined) {
          for await (const frame of reply.frames) await session.terminal.writeJson(`${frame.data}\n`);
          return 0;
        }
        await session.print(reply.body, operation.cli?.columns);
        if (reply.body === undefined && !session.globals.json) session.terminal.note(doneLine(operation, params));
        return exitCodeOf(operation, reply.body);
      });
      return call.catch(async (error: unknown) => {
        const flags = new Map(options.map(({ member, option }) => [member, option.long ?? option.flags]));
        throw await placedInputFault(error, { options: flags, file, takesFile: operation.body !== undefined }, session);
      });
    }),
  );
};

/** Adds a command for every operation that has none of its own. */
export const addGeneratedCommands = (host: CommandHost, table: ApiTable): void => {
  for (const [feature, operations] of Object.entries(table))
    for (const [verb, operation] of Object.entries(operations)) {
      if (operation.cli?.handWritten === true) continue;
      const path = commandWords(feature, verb, operation);
      const name = path.at(-1) ?? verb;
      const parent = path.slice(0, -1).reduce(commandGroup, host.program);
      if (parent.commands.some((command) => command.name() === name)) continue;
      generate(parent, host, name, `${feature}.${verb}`, operation);
    }
};
