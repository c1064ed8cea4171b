import { randomUUID } from 'node:crypto';
import { execa } from 'execa';
import { killTree } from '../../../core/kill-tree.ts';
import { OutboundError, type OutboundErrorCode } from '../../http/outbound-error.ts';
import type { Answer, Channel } from '../channel.ts';
import { McpFailure } from '../mcp-failure.ts';
import { sleep } from '../sleep.ts';
import { visibleText } from '../visible-text.ts';
import { answerTo, parseMessage, type RpcMessage } from '../wire/json-rpc.ts';
import { lineReader } from './lines.ts';

/** A server that the host starts, and speaks to over its standard streams. */
export interface ProgramSettings {
  readonly name: string;
  readonly command: readonly string[];
  /** All that it gets, beside a PATH where this has none. */
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDirectory: string | null;
}

export interface ProgramDeps {
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly path: string | undefined;
  readonly maxLineBytes: number;
}

/** Throws McpFailure. */
export interface Program {
  /** A way to it; it is started for that, unless it runs. */
  channel(): Promise<Channel>;
  /** Ends it and all that it has started. */
  stop(): Promise<void>;
}

interface Waiting {
  resolve(answer: Answer): void;
  reject(failure: McpFailure): void;
}

interface Running {
  readonly channel: Channel;
  readonly isOpen: () => boolean;
  end(failure: McpFailure): Promise<void>;
}

const firstPauseMs = 500;
const longestPauseMs = 60_000;
// One that has lived so long is started again at once.
const steadyMs = 60_000;
// What it may say between two answers that nobody has asked for.
const maxUnaskedBytes = 64 * 1024 * 1024;
// A line that is no message costs more than its length to find that out.
const junkBytes = 4096;
const maxUnreadBytes = 16 * 1024 * 1024;
const maxLoggedLines = 200;
const longestLoggedLine = 1000;

const failure = (code: OutboundErrorCode, cause?: unknown): McpFailure =>
  new McpFailure('no-answer', { cause: new OutboundError(code, cause === undefined ? undefined : { cause }) });

/** What a program says beside the protocol, up to a number of lines. */
const errorLog = ({ name }: ProgramSettings, { log }: ProgramDeps) => {
  let lines = 0;
  return lineReader(
    1024 * 1024,
    (line) => {
      lines += 1;
      if (lines <= maxLoggedLines)
        log.info({ server: name, line: visibleText(line.slice(0, longestLoggedLine)) }, 'An MCP server says');
      if (lines === maxLoggedLines) log.info({ server: name }, 'What the MCP server says further is not logged');
    },
    () => undefined,
  );
};

/** One program; every call starts another process. */
const launch = async (settings: ProgramSettings, deps: ProgramDeps): Promise<Running> => {
  const { name, command, environment, workingDirectory } = settings;
  const [file = '', ...args] = command;
  const mark = randomUUID();
  const child = execa(file, args, {
    env: { ...(deps.path === undefined ? {} : { PATH: deps.path }), ...environment, ACP_MCP_PROCESS: mark },
    extendEnv: false,
    ...(workingDirectory === null ? {} : { cwd: workingDirectory }),
    shell: false,
    // Its own group, so that what it starts ends with it.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    buffer: false,
    reject: false,
  });
  const { nodeChildProcess: node, pid } = child;
  if (pid === undefined) throw failure('unreachable', await child);
  const waiting = new Map<string, Waiting>();
  let isOpen = true;
  let unasked = 0;

  const end = async (why: McpFailure): Promise<void> => {
    if (isOpen) {
      isOpen = false;
      for (const { reject } of waiting.values()) reject(why);
      waiting.clear();
    }
    await killTree(pid, { variable: `ACP_MCP_PROCESS=${mark}`, folder: null });
    for (const stream of node.stdio) stream?.destroy();
  };
  const tooMuch = (): void => {
    deps.log.warn({ server: name }, 'An MCP server says more than it may and is ended');
    void end(failure('response-too-large'));
  };
  /** False: it has ended, or reads nothing any more. */
  const say = (message: unknown): boolean => {
    const { stdin } = node;
    if (!isOpen || stdin === null || stdin.writableLength > maxUnreadBytes) return false;
    stdin.write(`${JSON.stringify(message)}\n`);
    return true;
  };
  const heard = (message: Extract<RpcMessage, { kind: 'result' | 'error' }>): boolean => {
    const waits = message.id === null ? undefined : waiting.get(String(message.id));
    if (waits === undefined) return false;
    if (message.kind === 'result') waits.resolve({ result: message.result, headers: {} });
    else waits.reject(rpcFailureOf(message.error));
    return true;
  };
  const output = lineReader(
    deps.maxLineBytes,
    (line) => {
      const message = line === '' ? null : parseMessage(line);
      if (message !== null && (message.kind === 'result' || message.kind === 'error') && heard(message)) {
        unasked = 0;
        return;
      }
      unasked += line.length + (message === null ? junkBytes : 1);
      if (unasked > maxUnaskedBytes && isOpen) tooMuch();
      if (message?.kind === 'request') say(answerTo(message));
    },
    tooMuch,
  );
  node.stdout?.on('data', output.read);
  const errors = errorLog(settings, deps);
  node.stderr?.on('data', errors.read);
  // What a program says last is often said without an end of the line.
  node.stderr?.once('close', errors.end);
  // Its exit tells the same.
  node.stdin?.on('error', () => undefined);
  node.once('exit', (code, signal) => {
    if (isOpen) deps.log.warn({ server: name, code, signal }, 'An MCP server has ended');
    void end(failure('unreachable'));
  });

  const channel: Channel = {
    async request(message, { signal, timeoutMs }) {
      const key = String(message.id);
      const answer = Promise.withResolvers<Answer>();
      answer.promise.catch(() => undefined);
      const giveUp = (code: 'canceled' | 'timed-out') => (): void => {
        answer.reject(failure(code));
        if (message.method !== 'initialize')
          say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: message.id } });
      };
      const onAbort = giveUp('canceled');
      const late = setTimeout(giveUp('timed-out'), timeoutMs);
      signal?.addEventListener('abort', onAbort, { once: true });
      waiting.set(key, answer);
      try {
        if (!say(message)) throw failure('unreachable');
        return await answer.promise;
      } finally {
        clearTimeout(late);
        signal?.removeEventListener('abort', onAbort);
        waiting.delete(key);
      }
    },
    async notify(message) {
      if (!say(message)) throw failure('unreachable');
    },
    isOpen: () => isOpen,
    // One that could not be spoken to is of no use to the next who tries.
    close: () => void end(failure('unreachable')),
  };
  return { channel, isOpen: () => isOpen, end };
};

const rpcFailureOf = ({ code, message, data }: Extract<RpcMessage, { kind: 'error' }>['error']): McpFailure =>
  new McpFailure('rpc', { code, data, cause: new Error(message.slice(0, 500)) });

export const createProgram = (settings: ProgramSettings, deps: ProgramDeps): Program => {
  const stopping = new AbortController();
  let running: Running | null = null;
  let starting: Promise<Running> | null = null;
  let startedAt = 0;
  let failures = 0;

  const start = async (): Promise<Running> => {
    if (running !== null) {
      failures = performance.now() - startedAt >= steadyMs ? 0 : failures + 1;
      running = null;
    }
    if (failures > 0) await sleep(Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - 1)), stopping.signal);
    if (stopping.signal.aborted) throw failure('canceled');
    startedAt = performance.now();
    try {
      const begun = await launch(settings, deps);
      running = begun;
      // It was stopped while it began.
      if (stopping.signal.aborted) await begun.end(failure('canceled'));
      return begun;
    } catch (error) {
      failures += 1;
      deps.log.warn({ server: settings.name, err: error }, 'An MCP server could not be started');
      throw error;
    }
  };

  return {
    async channel() {
      if (running?.isOpen() === true) return running.channel;
      starting ??= start().finally(() => {
        starting = null;
      });
      return (await starting).channel;
    },
    async stop() {
      stopping.abort();
      await starting?.catch(() => undefined);
      await running?.end(failure('canceled'));
    },
  };
};
