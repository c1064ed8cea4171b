import type { Command } from 'commander';
import type { Session } from './session.ts';

export interface Invocation {
  readonly args: readonly unknown[];
  readonly options: Readonly<Record<string, unknown>>;
}

/** Does the work of a command; the exit code is 0 unless it gives another. */
export type CommandAction = (session: Session, invocation: Invocation) => Promise<number | undefined>;

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
export const commandGroup = (program: Command, name: string, description: string): Command =>
  program.commands.find((command) => command.name() === name) ??
  program.command(name).description(description).usage('<command>').helpCommand(false);

/** Collects the values of an option that may be repeated. */
export const collect = (value: string, previous: readonly string[] | undefined): string[] => [
  ...(previous ?? []),
  value,
];
