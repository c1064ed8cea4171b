import { setTimeout as delay } from 'node:timers/promises';
import { AcpError, type ErrorCode } from '../contract/errors.ts';
import type { Frame } from '../contract/operation.ts';
import { terminalEvents } from '../contract/run-outcome.ts';
import type { Client, FramesReply } from './client.ts';

export interface FollowOptions {
  /** Sequence of the last event that is already known; the first one yielded follows it. Default: from the start. */
  readonly from?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long to try again when nothing arrives, before the last error is thrown; default 2 minutes. */
  readonly patienceMs?: number | undefined;
  /** Told when a stream was opened: the first one, and each that goes on after a drop. */
  readonly onOpen?: (() => void) | undefined;
  /** Told before each new attempt. */
  readonly onRetry?: ((error: AcpError, delayMs: number) => void) | undefined;
}

const defaultPatienceMs = 120_000;
const firstDelayMs = 250;
const longestDelayMs = 5_000;

/** What passes by itself: the network, a restart, a limit. Everything else would fail again. */
const passing: ReadonlySet<ErrorCode> = new Set([
  'cannot-connect',
  'draining',
  'migrating',
  'store-unavailable',
  'rate-limited',
  'too-many-streams',
]);

/** True for failures after which the same call may well succeed. */
export const passesByItself = (error: unknown): error is AcpError =>
  error instanceof AcpError && passing.has(error.code);

/** Waits, or rejects with the signal's reason. */
export const pause = async (milliseconds: number, signal: AbortSignal | undefined): Promise<void> => {
  try {
    await delay(milliseconds, undefined, { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
};

const openStatuses: ReadonlySet<string> = new Set(['Queued', 'Running']);

/** Where a reader stands in a log: what it has seen, and since when nothing came. */
class LogPosition {
  last: number;
  attempts = 0;
  /** False until a stream was opened once: a service that is not there at all is told at once. */
  #opened = false;
  #since = Date.now();
  readonly #options: FollowOptions;

  constructor(options: FollowOptions) {
    this.last = options.from ?? -1;
    this.#options = options;
  }

  open(): void {
    this.#opened = true;
    this.#options.onOpen?.();
  }

  /** True for a frame that comes next, false for one that was seen; throws where the stream has a gap. */
  accept(frame: Frame): boolean {
    // The `error` frame is not part of the log.
    if (frame.id === undefined) return true;
    if (frame.id <= this.last) return false;
    if (frame.id !== this.last + 1)
      throw new AcpError('cannot-connect', `The event stream goes from ${this.last} to ${frame.id}.`);
    this.last = frame.id;
    this.attempts = 0;
    this.#since = Date.now();
    return true;
  }

  async beforeRetry(error: unknown): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if (!this.#opened || !passesByItself(error)) throw error;
    const wait = error.details.retryAfterMs ?? Math.min(firstDelayMs * 2 ** this.attempts, longestDelayMs);
    if (Date.now() + wait - this.#since > (this.#options.patienceMs ?? defaultPatienceMs)) throw error;
    this.attempts += 1;
    this.#options.onRetry?.(error, wait);
    await pause(wait, this.#options.signal);
  }
}

const isOpen = async (client: Client, runId: string, signal: AbortSignal | undefined): Promise<boolean> => {
  const { body } = await client.runs.get({ params: { runId }, signal });
  return openStatuses.has(body.status);
};

const openEvents = async (client: Client, runId: string, last: number, signal: AbortSignal | undefined) => {
  const headers = last < 0 ? {} : { 'last-event-id': String(last) };
  const { frames } = await client.runs.events({ params: { runId }, headers, signal });
  return frames;
};

const followFrom = async function* (
  client: Client,
  runId: string,
  position: LogPosition,
  first: AsyncIterable<Frame> | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<Frame, void, undefined> {
  let frames = first;
  for (;;) {
    try {
      frames ??= await openEvents(client, runId, position.last, signal);
      position.open();
      for await (const frame of frames) {
        if (!position.accept(frame)) continue;
        yield frame;
        if (terminalEvents.has(frame.event)) return;
      }
      // A stream that ends without a terminal event belongs to a closed run whose log is gone, or was cut short.
      if (!(await isOpen(client, runId, signal))) return;
      throw new AcpError('cannot-connect', 'The event stream ended before the run did.');
    } catch (error) {
      await position.beforeRetry(error);
      frames = null;
    }
  }
};

/**
 * The events of a run, live or finished, in order, each exactly once: after a dropped connection it goes on by sequence.
 * It ends after the terminal event, or at once when the run is closed and its log was removed. A first connection that
 * fails, and errors that do not pass such as an unknown run, are thrown at once.
 */
export const followEvents = (
  client: Client,
  runId: string,
  options: FollowOptions = {},
): AsyncGenerator<Frame, void, undefined> => followFrom(client, runId, new LogPosition(options), null, options.signal);

/** Goes on with the stream that started a run: what a dropped connection would lose is read from the run's log. */
export const followStarted = (
  client: Client,
  runId: string,
  reply: FramesReply,
  options: FollowOptions = {},
): AsyncGenerator<Frame, void, undefined> =>
  followFrom(client, runId, new LogPosition(options), reply.frames, options.signal);
