import type { Command, Option } from 'commander';
import type { ApiTable, Operation } from '../../contract/operation.ts';
import { operations } from '../../operations.ts';
import { operationsOf } from '../command-host.ts';
import { kebab, type Shape } from '../generate.ts';
import type { Candidate } from './completion-lists.ts';
import type { Place } from './completion-place.ts';
import { shells } from './completion-script.ts';

const enumWords = (shape: Shape | undefined): string[] => {
  if (shape === undefined) return [];
  const own = shape.const === undefined ? (shape.enum ?? []) : [shape.const];
  return [
    ...own.filter((word) => typeof word === 'string'),
    ...(shape.anyOf ?? []).flatMap(enumWords),
    ...enumWords(shape.items),
  ];
};

const operationOf = (id: string): Operation | undefined => {
  const [feature = '', verb = ''] = id.split('.');
  return (operations as ApiTable)[feature]?.[verb];
};

/** What the schemas of a command's operations allow for a member: `--scope` fills `scopes`, `--query-name` `name`. */
const schemaWords = (command: Command, name: string, parts: readonly ('params' | 'query' | 'headers' | 'body')[]) => {
  const names = [name, `${name}s`, name.replace(/^(query|headers|body)-/, '')];
  const shapes = operationsOf(command)
    .flatMap((id) => operationOf(id) ?? [])
    .flatMap((operation) => parts.flatMap((part) => Object.entries((operation[part] as Shape)?.properties ?? {})))
    .filter(([member]) => names.includes(kebab(member)));
  return [...new Set(shapes.flatMap(([, shape]) => enumWords(shape)))];
};

const optionWords = (program: Command, { command }: Place): Candidate[] =>
  [...command.options, ...program.options]
    .filter(({ hidden }) => !hidden)
    .flatMap(({ long, description }) => (long == null ? [] : [{ value: long, note: description }]))
    .concat({ value: '--help', note: 'print help' });

/** The words that this program knows for a place without asking anybody. */
export const knownWords = (program: Command, place: Place): Candidate[] => {
  const { command, expected } = place;
  const plain = (words: readonly string[]): Candidate[] => words.map((value) => ({ value }));
  switch (expected.is) {
    case 'command':
      return command
        .createHelp()
        .visibleCommands(command)
        .map((child) => ({ value: child.name(), note: child.description() }));
    case 'option':
      return optionWords(program, place);
    case 'value':
      return plain(expected.of.argChoices ?? schemaWords(command, expected.of.name(), ['query', 'headers', 'body']));
    case 'argument':
      if (expected.of.name() === 'shell') return plain(shells);
      return plain(expected.of.argChoices ?? schemaWords(command, expected.of.name(), ['params']));
    case 'nothing':
      return [];
  }
};

const fileOption = ({ flags }: Option): boolean => /[<[=](file|path|folder)[\]>]/.test(flags);

/** True where the name of a file belongs. */
export const takesFile = ({ expected }: Place): boolean => {
  if (expected.is === 'value') return fileOption(expected.of);
  return expected.is === 'argument' && ['file', 'path', 'bundle', 'folder'].includes(expected.of.name());
};
