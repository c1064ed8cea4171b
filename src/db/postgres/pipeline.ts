import pg from 'pg';
import { systemCode } from '../../core/files/system-code.ts';
import { storedText } from '../stored-text.ts';
import { isOutdatedPlan } from './outdated-plan.ts';
import { leaveSession, type Naming, type SessionStatements, statementsOf } from './session-statements.ts';

/** What the server answered to one statement. */
export interface Answer {
  readonly command: string;
  readonly rowCount: number | null;
  readonly rows: readonly unknown[];
}

export interface Sent {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  /** False: no rows are asked for, which saves a message each way. Default: true. */
  readonly returns?: boolean;
  /** Whether the server keeps it for the session once it comes again. Default: where no rows are asked for. */
  readonly isKept?: boolean;
}

const writes = /^\s*(insert|update|delete|merge)\b|^\s*with\b.*\b(insert\s+into|update|delete\s+from)\b/is;

export const isWrite = ({ sql }: Sent): boolean => writes.test(sql);

type Outcome = { readonly answers: readonly Answer[] } | { readonly error: unknown; readonly at: number };

interface Stream {
  readonly writable: boolean;
  write(bytes: Buffer): boolean;
}

/** The part of the driver's connection that writes messages of the extended query protocol. */
interface Wire {
  stream: Stream;
  parse(message: { name: string; text: string; types: readonly string[] }): void;
  bind(message: {
    portal: string;
    statement: string;
    values: readonly unknown[];
    valueMapper: (value: unknown) => Buffer | string | null;
  }): void;
  describe(message: { type: 'P'; name: string }): void;
  execute(message: { portal: string; rows: number }): void;
  close(message: { type: 'S'; name: string }): void;
  sync(): void;
}

const wireValue = (value: unknown): Buffer | string | null => {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string') return storedText(value);
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : String(value);
};

/** What the driver's own query does with the messages that come back; its declarations leave it out. */
declare class DriverQuery {
  constructor(text: string, callback: (error: unknown, answers: Answer | Answer[]) => void);
  submit(wire: Wire): null;
  handleDataRow(message: unknown): void;
  handleCommandComplete(message: unknown, wire: Wire): void;
}

const once: Naming = { name: '', isNew: true, drops: null };
// invalid_sql_statement_name: the session is another one.
const unknownStatement = '26000';

const Base = pg.Query as unknown as typeof DriverQuery;

/** Several statements as one message: nothing is waited for between them, and after one that fails none is executed. */
class Pipeline extends Base {
  readonly #statements: readonly Sent[];
  readonly #kept: SessionStatements | null;
  /** Texts that are told to be kept with this message, by their position. */
  readonly #fresh: (readonly [position: number, text: string])[] = [];
  completed = 0;

  constructor(
    statements: readonly Sent[],
    kept: SessionStatements | null,
    callback: (error: unknown, answers: Answer | Answer[]) => void,
  ) {
    super(statements[0]?.sql ?? '', callback);
    this.#statements = statements;
    this.#kept = kept;
  }

  override submit(wire: Wire): null {
    const { stream } = wire;
    const messages: Buffer[] = [];
    // Written one by one, some forty small messages cost more than to copy them.
    wire.stream = { writable: true, write: (message) => messages.push(message) > 0 };
    try {
      this.#write(wire);
    } finally {
      wire.stream = stream;
    }
    if (stream.writable) stream.write(Buffer.concat(messages));
    return null;
  }

  #write(wire: Wire): void {
    /** What the unnamed statement is: equal ones that follow each other are read once. */
    let unnamed: string | null = null;
    const now = performance.now();
    for (const [position, { sql, parameters, returns = true, isKept = !returns }] of this.#statements.entries()) {
      const { name, isNew, drops } = isKept && this.#kept !== null ? this.#kept.named(sql, now) : once;
      if (drops !== null) wire.close({ type: 'S', name: drops });
      if (name === '' ? sql !== unnamed : isNew) wire.parse({ name, text: sql, types: [] });
      if (name === '') unnamed = sql;
      else if (isNew) this.#fresh.push([position, sql]);
      wire.bind({ portal: '', statement: name, values: parameters, valueMapper: wireValue });
      if (returns) wire.describe({ type: 'P', name: '' });
      wire.execute({ portal: '', rows: 0 });
    }
    wire.sync();
  }

  /** From the one that failed on nobody knows what the server has. */
  failed(error: unknown): void {
    for (const [position, text] of this.#fresh) if (position >= this.completed) this.#kept?.forget(text);
    const failed = this.#statements[this.completed];
    if (isOutdatedPlan(error) && failed !== undefined) this.#kept?.forget(failed.sql);
  }

  override handleDataRow(message: unknown): void {
    // Of what was not described nobody knows the columns, and nobody asked.
    if (this.#statements[this.completed]?.returns !== false) super.handleDataRow(message);
  }

  override handleCommandComplete(message: unknown, wire: Wire): void {
    this.completed += 1;
    super.handleCommandComplete(message, wire);
  }
}

/**
 * Sends the statements together; they are executed in their order until one fails, whose position is `at`. Without a
 * `begin` among them they are one transaction of their own.
 */
export const sendTogether = (client: pg.ClientBase, statements: readonly Sent[]): Promise<Outcome> =>
  new Promise((resolve) => {
    const pipeline = new Pipeline(statements, statementsOf(client), (error, answers) => {
      if (error === null || error === undefined) {
        resolve({ answers: Array.isArray(answers) ? answers : [answers] });
        return;
      }
      pipeline.failed(error);
      if (systemCode(error) === unknownStatement) leaveSession(client);
      resolve({ error, at: pipeline.completed });
    });
    client.query(pipeline as unknown as pg.Query);
  });
