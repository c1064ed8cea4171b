import type { Argument, Command, Option } from 'commander';
import { childOf } from '../command-host.ts';

/** What the word that is being typed stands for. */
type Expected =
  | { readonly is: 'command' }
  | { readonly is: 'option' }
  | { readonly is: 'value'; readonly of: Option }
  | { readonly is: 'argument'; readonly of: Argument }
  | { readonly is: 'nothing' };

/** A place in the command line. */
export interface Place {
  readonly command: Command;
  /** Words that lead to the command, such as `runs`, `tail`. */
  readonly path: readonly string[];
  /** Arguments that stand before the word. */
  readonly args: readonly string[];
  /** Values of options that stand before the word, by their attribute names. */
  readonly options: Readonly<Record<string, readonly string[]>>;
  readonly expected: Expected;
  /** What the word begins with that is no part of the value: `--status=`. */
  readonly prefix: string;
  /** What is typed of the value. */
  readonly typed: string;
}

/** A word as a shell would read it; the quote of a word that is being typed may be open. */
const unquoted = (word: string): string => word.replace(/^(["'])(.*?)\1?$/s, '$2').replace(/\\(.)/gs, '$1');

const takesValue = (option: Option): boolean => option.required || option.optional;

const optionOf = (program: Command, command: Command, flag: string): Option | undefined =>
  [...command.options, ...program.options].find(({ long, short }) => long === flag || short === flag);

const looksLikeOption = (word: string): boolean => word.startsWith('-') && word !== '-';

const splitFlag = (word: string): [flag: string, value: string | undefined] => {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
};

const argumentAt = ({ registeredArguments }: Command, index: number): Argument | undefined => {
  const last = registeredArguments.at(-1);
  return registeredArguments[index] ?? (last?.variadic === true ? last : undefined);
};

interface Walk {
  command: Command;
  readonly path: string[];
  readonly args: string[];
  readonly options: Record<string, string[]>;
  /** The option whose value comes next. */
  waiting: Option | undefined;
  /** Behind `--` nothing is an option. */
  literal: boolean;
}

/** Takes one word; false for a word that no command line has there. */
const step = (program: Command, walk: Walk, word: string): boolean => {
  const { waiting } = walk;
  walk.waiting = undefined;
  const give = (option: Option, value: string): void => {
    const name = option.attributeName();
    walk.options[name] = [...(walk.options[name] ?? []), value];
  };
  if (waiting !== undefined && (waiting.required || !looksLikeOption(word))) {
    give(waiting, word);
    return true;
  }
  if (!walk.literal && word === '--') {
    walk.literal = true;
    return true;
  }
  if (!walk.literal && looksLikeOption(word)) {
    const [flag, value] = splitFlag(word);
    const option = optionOf(program, walk.command, flag);
    if (option === undefined || !takesValue(option)) return true;
    if (value === undefined) walk.waiting = option;
    else give(option, value);
    return true;
  }
  if (walk.command.commands.length === 0) {
    walk.args.push(word);
    return true;
  }
  const child = childOf(walk.command, word);
  if (child === undefined) return false;
  walk.command = child;
  walk.path.push(child.name());
  return true;
};

const expectedAt = (program: Command, walk: Walk, word: string): Pick<Place, 'expected' | 'prefix' | 'typed'> => {
  const { command, waiting, literal, args } = walk;
  const plain = { prefix: '', typed: word };
  if (waiting !== undefined && (waiting.required || !looksLikeOption(word)))
    return { expected: { is: 'value', of: waiting }, ...plain };
  if (!literal && word.startsWith('-')) {
    const [flag, value] = splitFlag(word);
    if (value === undefined) return { expected: { is: 'option' }, ...plain };
    const option = optionOf(program, command, flag);
    return option === undefined || !takesValue(option)
      ? { expected: { is: 'nothing' }, ...plain }
      : { expected: { is: 'value', of: option }, prefix: `${flag}=`, typed: value };
  }
  if (command.commands.length > 0) return { expected: { is: 'command' }, ...plain };
  const argument = argumentAt(command, args.length);
  return { expected: argument === undefined ? { is: 'nothing' } : { is: 'argument', of: argument }, ...plain };
};

/** Where the words after `acp` lead, of which the last is being typed; null where no command line leads. */
export const placeOf = (program: Command, words: readonly string[]): Place | null => {
  const before = words.slice(0, -1).map(unquoted);
  const word = unquoted(words.at(-1) ?? '');
  // The words of `acp help` are those of the command that it explains.
  const helps = before[0] === 'help';
  const walk: Walk = { command: program, path: [], args: [], options: {}, waiting: undefined, literal: false };
  for (const each of helps ? before.slice(1) : before) if (!step(program, walk, each)) return null;
  const at = expectedAt(program, walk, word);
  const { command, path, args, options } = walk;
  const expected: Expected = helps && at.expected.is !== 'command' ? { is: 'nothing' } : at.expected;
  return { command, path, args, options, ...at, expected };
};
