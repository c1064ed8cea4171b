import { Console } from 'node:console';
import process from 'node:process';
import { setFlagsFromString } from 'node:v8';
import type { LoadedConfig } from '../core/config/index.ts';
import type { Logger } from '../core/logger.ts';
import { jsonForTerminal } from '../text/terminal-guard.ts';
import { type Interrupt, interruptedExitCode, onInterrupt } from './interrupt.ts';
import type { Session } from './session.ts';

export interface Serving {
  /** Address with the mount prefix. */
  readonly url: string;
  readonly config: LoadedConfig;
  /** Callers of this machine are administrators without a credential. */
  readonly anonymous: boolean;
  readonly log: Logger;
}

const tellWarnings = async ({ terminal }: Session, config: LoadedConfig): Promise<void> => {
  if (config.warnings.length === 0) return;
  const { describeProblems } = await import('../core/config/index.ts');
  terminal.note(`${terminal.noteStyle.yellow('Warnings:')}\n${describeProblems(config.warnings)}`);
};

/** Resolves with the first interrupt; a second one ends the process at once, whatever is still going on. */
const firstInterrupt = (): { readonly promise: Promise<Interrupt>; release(): void } => {
  const { promise, resolve } = Promise.withResolvers<Interrupt>();
  const release = onInterrupt((signal, earlier) => {
    if (earlier > 0) process.exit(interruptedExitCode[signal]);
    resolve(signal);
  });
  return { promise, release };
};

/** Once, as the first signal comes: what the process still waits for is not to be seen from outside. */
const tellStop = (log: Pick<Logger, 'info'>, wait: { readonly runs: number; readonly atMostMs: number }): void => {
  const waits = wait.runs > 0 && wait.atMostMs > 0;
  log.info(
    wait,
    waits
      ? 'Stopping as soon as the runs in progress have ended or their time is up; a second signal ends at once'
      : 'Stopping; a second signal ends at once',
  );
};

/** Where the lines of the log go. On a terminal, what would steer it is escaped in them. */
const logTo = (name: 'stdout' | 'stderr'): { write(line: string): void } => {
  const stream = process[name];
  return { write: (line) => void stream.write(stream.isTTY === true ? jsonForTerminal(line) : line) };
};

/** What modules print is no line of the log: it would break what reads standard output. */
const printToStderr = (): void => {
  globalThis.console = new Console(process.stderr, process.stderr);
};

/**
 * Starts the service, calls `ready` and serves until a signal, or until `ready` gives an exit code. Closing
 * gives runs in progress their time to end. `stream` takes the log; where that is stdout, nothing else goes there.
 */
export const serveUntilStopped = async (
  session: Session,
  config: LoadedConfig,
  stream: 'stdout' | 'stderr',
  ready: (serving: Serving) => Promise<number | undefined>,
): Promise<number> => {
  const [{ createService }, { createLogger }] = await Promise.all([
    import('../http/service.ts'),
    import('../core/logger.ts'),
  ]);
  // A serving process lives for weeks beside others: its heap grows by a fifth of what is in use, not to several times that.
  setFlagsFromString('--heap-growing-percent=20');
  // Without the middle compiler, and the best one asked sooner: after seconds of load runs cost an eighth less, and 30 MB
  // of compiler memory that would stay resident are not needed.
  setFlagsFromString('--no-maglev');
  setFlagsFromString('--invocation-count-for-turbofan=1500');
  // One thread compiles hot functions, since each that did keeps its arena.
  setFlagsFromString('--concurrent-turbofan-max-threads=1');
  const log = createLogger(config.values.Host.LogLevel, logTo(stream));
  if (stream === 'stdout') printToStderr();
  await tellWarnings(session, config);
  const interrupt = firstInterrupt();
  const starting = new AbortController();
  void interrupt.promise.then(() => starting.abort());
  try {
    const service = await createService({ config, log, cwd: session.cwd, stopping: starting.signal });
    try {
      const { url } = await service.listen();
      const exitCode = await Promise.race([
        ready({ url, config, anonymous: service.describe().access.anonymous, log }),
        interrupt.promise,
      ]);
      if (typeof exitCode === 'number') return exitCode;
      await interrupt.promise;
      tellStop(log, service.drainWait());
      return 0;
    } finally {
      await service.close();
      // A receiver of telemetry that hangs would hold the process for as long as its timeouts. The exit code is set by then.
      if (service.telemetry.leftBehind) setTimeout(() => process.exit(), 100);
    }
  } catch (error) {
    if (!starting.signal.aborted || error !== starting.signal.reason) throw error;
    return interruptedExitCode[await interrupt.promise];
  } finally {
    interrupt.release();
  }
};
