import type { Client } from '../client/client.ts';
import type { Transport } from '../client/transport.ts';
import type { Shown } from './output/print-reply.ts';
import type { Terminal } from './output/terminal.ts';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly json: boolean;
  readonly config?: string;
  readonly set: readonly string[];
  readonly color: boolean;
}

export interface Connection {
  readonly client: Client;
  readonly transport: Transport;
  /** True when the store was opened in this process, whose scheduler is off, and no other one can be at work on it. */
  readonly local: boolean;
}

/**
 * What happens to a store that the command has to open itself. A preview writes nothing and makes none; a check does the
 * same, and works without any store, since its findings are about files.
 */
export type StoreAccess = 'work' | 'preview' | 'check';

/** What a command works with. */
export interface Session {
  readonly terminal: Terminal;
  readonly globals: GlobalOptions;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** Prints an answer: with `--json` as it is, else for people. */
  print(body: unknown, shown?: Shown): Promise<void>;
  /** Runs work with a connection and closes it whatever happens. */
  connected<T>(work: (connection: Connection) => Promise<T>, access?: StoreAccess): Promise<T>;
}
