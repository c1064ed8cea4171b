import type { Command } from 'commander';
import { AcpError } from '../contract/errors.ts';
import { groupDescriptions } from './groups.ts';
import type { Session } from './session.ts';

export interface Invocation {
  readonly args: readonly unknown[];
  readonly options: Readonly<Record<string, unknown>>;
}

type Action<T> = (session: Session, invocation: Invocation) => Promise<T>;

/** Does the work of a command; the exit code is 0 unless it gives another. */
export type CommandAction = Action<number> | Action<void>;

/** What commands are registered with: it gives each action its session and keeps the exit code. */
export interface CommandHost {
  readonly program: Command;
  act(action: CommandAction): (...raw: unknown[]) => Promise<void>;
}

const covered = new WeakMap<Command, readonly string[]>();

/** Says which operations a hand-written command calls, so that a test can tell that each one is reachable. */
export const covers = (command: Command, ...operationIds: readonly string[]): Command => {
  covered.set(command, operationIds);
  return command;
};

/** The operations that a command calls. */
export const operationsOf = (command: Command): readonly string[] => covered.get(command) ?? [];

export interface CommandEntry {
  /** Words after `acp`. */
  readonly name: string;
  readonly command: Command;
  readonly operations: readonly string[];
}

/** All commands below a program that do something, in the order of the help. */
export const commandEntries = (program: Command, prefix = ''): CommandEntry[] =>
  program.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const own = { name, command, operations: operationsOf(command) };
    return command.commands.length === 0 ? [own] : commandEntries(command, `${name} `);
  });

/** The group `acp <name>`, made when it is asked for first. */
export const commandGroup = (program: Command, name: string): Command =>
  program.commands.find((command) => command.name() === name) ??
  program
    .command(name)
    .description(groupDescriptions[name] ?? '')
    .usage('<command>')
    .helpCommand(false);

export const childOf = (command: Command, word: string): Command | undefined =>
  command.commands.find((child) => child.name() === word || child.aliases().includes(word));

/** `name=value` of an option. Throws for what is no pair; `rule` says what the option takes. */
export const splitPair = (pair: string, rule: string): [name: string, value: string] => {
  const at = pair.indexOf('=');
  if (at < 1) throw new AcpError('validation-failed', `${rule}, not "${pair}".`);
  return [pair.slice(0, at), pair.slice(at + 1)];
};

export const toNumber =
  (flag: string) =>
  (text: unknown): number => {
    const value = Number(text);
    if (String(text).trim() === '' || !Number.isFinite(value))
      throw new AcpError('validation-failed', `${flag} must be a number, not "${String(text)}".`);
    return value;
  };

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, previous: readonly string[] | undefined): string[] => [
  ...(previous ?? []),
  value,
];
