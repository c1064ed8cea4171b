import { once } from 'node:events';
import process from 'node:process';
import { AcpError } from '../../contract/errors.ts';
import { createStyle, type Style } from '../../text/style.ts';
import { guardTerminal, jsonForTerminal } from '../../text/terminal-guard.ts';
import { fitText, safeLine, textWidth } from '../../text/text-width.ts';

/** Nobody reads the output any more (`acp runs list | head -1`); the command ends without a word. */
export class OutputClosedError extends Error {
  constructor() {
    super('The output was closed.');
    this.name = 'OutputClosedError';
  }
}

/** The streams of the process as commands use them: answers on stdout, everything about them on stderr. */
export interface Terminal {
  readonly style: Style;
  /** Style of stderr, which may be a terminal when stdout is a file. */
  readonly noteStyle: Style;
  /** Cells of a line; absent where stdout is no terminal, and nothing is cut. */
  readonly width: number | undefined;
  readonly interactive: boolean;
  /** False where stdout is no terminal, and for `--no-color`, NO_COLOR and TERM=dumb. */
  readonly colored: boolean;
  /** Whether a person can be asked: stdin and stdout are terminals. */
  readonly canAsk: boolean;
  /** Aborted when the reader of stdout is gone. */
  readonly closed: AbortSignal;
  /** What is no text of the program's own was made safe before; on a terminal, control characters that are left go. */
  write(content: string | Uint8Array): Promise<void>;
  /** JSON text: as it is, but on a terminal with what would steer it escaped. */
  writeJson(json: string): Promise<void>;
  /**
   * On a terminal, a line in place of the one that was shown like this before, cut to the window; empty: takes it away, as
   * has to be done before anything else is written. Elsewhere nothing.
   */
  redraw(line: string): void;
  /** A line on stderr. */
  note(line: string): void;
  /** JSON text as a line on stderr. */
  noteJson(json: string): void;
  /** All of stdin as text; throws for bytes that are no UTF-8. */
  readInput(): Promise<string>;
}

export interface TerminalOptions {
  readonly color: boolean;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const wantsColor = (stream: { readonly isTTY?: boolean }, { color, environment }: TerminalOptions): boolean =>
  color && stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';

const readAll = async (): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw new AcpError('validation-failed', 'The standard input is not UTF-8 text.', { cause });
  }
};

export const openTerminal = (options: TerminalOptions): Terminal => {
  const { stdout, stderr } = process;
  const closed = new AbortController();
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    closed.abort(error.code === 'EPIPE' ? new OutputClosedError() : error);
  });
  // Without stderr there is nowhere left to report to.
  stderr.on('error', () => undefined);
  const interactive = stdout.isTTY === true;
  const notesToTerminal = stderr.isTTY === true;
  const send = async (content: string | Uint8Array): Promise<void> => {
    closed.signal.throwIfAborted();
    if (stdout.write(content)) return;
    await once(stdout, 'drain', { signal: closed.signal }).catch((error: unknown) => {
      throw closed.signal.aborted ? closed.signal.reason : error;
    });
  };
  const colored = wantsColor(stdout, options);
  let redrawn = 0;
  return {
    style: createStyle(colored),
    colored,
    noteStyle: createStyle(wantsColor(stderr, options)),
    width: interactive ? stdout.columns : undefined,
    interactive,
    canAsk: interactive && process.stdin.isTTY === true,
    closed: closed.signal,
    write: (content) => send(interactive && typeof content === 'string' ? guardTerminal(content) : content),
    writeJson: (json) => send(interactive ? jsonForTerminal(json) : json),
    redraw(line) {
      if (!interactive || closed.signal.aborted) return;
      const shown = fitText(safeLine(line), stdout.columns - 1);
      // With spaces, and no sequence that a simple terminal would not know.
      const wipe = redrawn === 0 ? '' : `\r${' '.repeat(Math.min(redrawn, stdout.columns - 1))}\r`;
      redrawn = textWidth(shown);
      stdout.write(`${wipe}${shown}`);
    },
    note(line) {
      stderr.write(`${notesToTerminal ? guardTerminal(line) : line}\n`);
    },
    noteJson(json) {
      stderr.write(`${notesToTerminal ? jsonForTerminal(json) : json}\n`);
    },
    readInput: readAll,
  };
};
