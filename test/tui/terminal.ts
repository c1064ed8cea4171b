import { execFile, spawnSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import type { TestContext } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { eventually, processMs } from '../support/eventually.ts';
import { program as bundled, programEnvironment } from '../support/program.ts';

const run = promisify(execFile);

/** Why tests that need a terminal are left out on this machine; false where they run. */
export const withoutTmux: string | false =
  spawnSync('tmux', ['-V']).status === 0 ? false : 'there is no tmux on this machine';

export interface Terminal {
  /** The screen as text, a row a line. */
  screen(): Promise<string>;
  /** The same with the escape sequences that set colours and weights. */
  styledScreen(): Promise<string>;
  /** Waits until the screen is as expected, and gives it back; the failure shows the screen. */
  until(expected: RegExp | ((screen: string) => boolean)): Promise<string>;
  /** Presses keys, one after the other: characters, or names such as Enter and Escape. */
  press(...keys: readonly string[]): Promise<void>;
  type(text: string): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** Signals the program, not the terminal. */
  signal(name: NodeJS.Signals): Promise<void>;
  /** Whether the alternate screen is on and the cursor is shown. */
  state(): Promise<{ readonly alternate: boolean; readonly cursor: boolean }>;
}

export interface TerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** What is started as `acp`; default: the bundle. */
  readonly program?: readonly string[];
}

let opened = 0;

/** Without a word when it has ended already. */
const endProcess = (pid: number): void => {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

/**
 * A real terminal that runs `acp` with arguments in a folder, and then prints `ended <exit code>`. Its server is one of
 * its own, with no settings of the machine, and ends with the test.
 */
export const openTerminal = async (
  t: Pick<TestContext, 'after'>,
  folder: string,
  args: readonly string[],
  { columns = 80, rows = 24, env = {}, program = bundled }: TerminalOptions = {},
): Promise<Terminal> => {
  opened += 1;
  const socket = join(folder, `terminal-${opened}.sock`);
  const pidFile = `${socket}.pid`;
  const tmux = async (...words: readonly string[]): Promise<string> =>
    (await run('tmux', ['-u', '-f', '/dev/null', '-S', socket, ...words])).stdout;
  const variables = {
    PATH: process.env['PATH'] ?? '',
    HOME: folder,
    TZ: 'UTC',
    LANG: 'C.UTF-8',
    ...programEnvironment,
    ...env,
  };
  const assignments = Object.entries(variables).map(([name, value]) => quoted(`${name}=${value}`));
  const command = [...program, ...args].map(quoted).join(' ');
  // The terminal's own kind is kept unless a test sets another.
  const clean = `env -i TERM="$TERM" ${assignments.join(' ')}`;
  const script = `cd ${quoted(folder)}; ${clean} sh -c 'echo $$ > "$0"; exec "$@"' ${quoted(pidFile)} ${command}; echo "ended $?"; exec cat`;
  await tmux('new-session', '-d', '-x', String(columns), '-y', String(rows), script);
  // By its process id: a test may remove the folder, and with it the socket, before this runs.
  const server = Number(await tmux('display-message', '-p', '#{pid}'));
  t.after(() => endProcess(server));

  const screen = (): Promise<string> => tmux('capture-pane', '-p');
  return {
    screen,
    styledScreen: () => tmux('capture-pane', '-p', '-e'),
    async until(expected) {
      const isThere = typeof expected === 'function' ? expected : (text: string) => expected.test(text);
      let text = '';
      const look = async (): Promise<boolean> => {
        text = await screen();
        // A look starts a process, so there is a pause between two.
        return isThere(text) || pause(30, false);
      };
      await eventually(`the screen ${expected}`, look, processMs).catch((error: unknown) => {
        throw new Error(`The screen does not show ${expected}, but:\n${text}`, { cause: error });
      });
      return text;
    },
    async press(...keys) {
      await tmux('send-keys', ...keys);
    },
    async type(text) {
      await tmux('send-keys', '-l', text);
    },
    async resize(width, height) {
      await tmux('resize-window', '-x', String(width), '-y', String(height));
    },
    async signal(name) {
      process.kill(Number(await readFile(pidFile, 'utf8')), name);
    },
    async state() {
      const [alternate, cursor] = (await tmux('display-message', '-p', '#{alternate_on} #{cursor_flag}'))
        .trim()
        .split(' ');
      return { alternate: alternate === '1', cursor: cursor === '1' };
    },
  };
};
