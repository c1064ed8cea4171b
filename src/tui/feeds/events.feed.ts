import { setTimeout as delay } from 'node:timers/promises';
import { followEvents, passesByItself, pause } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import type { Frame } from '../../contract/operation.ts';
import { terminalEvents } from '../../contract/run-outcome.ts';
import type { RunCost, RunUsage } from '../../features/runs/runs.schema.ts';
import { eventLine, frameData } from '../../text/event-line.ts';
import { createStyle } from '../../text/style.ts';
import { safeLine } from '../../text/text-width.ts';
import type { StreamState } from '../state/open-run.ts';
import type { Activity } from '../state/run-list.ts';
import { isOpen } from '../state/run-status.ts';
import { type Feed, type FeedContext, polling } from './feed.ts';

/** Events are handed over at most this often, so that a burst is drawn once and the screen is never 100 ms behind. */
const batchMs = 25;
/** A long log is taken in pieces that leave room for keys. */
const maxBatch = 500;
const retryMs = 1_000;
const treeIntervalMs = 400;
const closedTreeIntervalMs = 5_000;

/** Collects frames and hands them on in batches; what is left goes with `flush`. */
const batches = (deliver: (frames: readonly Frame[]) => void) => {
  let waiting: Frame[] = [];
  let timer: NodeJS.Timeout | null = null;
  const flush = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const frames = waiting;
    waiting = [];
    if (frames.length > 0) deliver(frames);
  };
  return {
    flush,
    async add(frame: Frame): Promise<void> {
      waiting.push(frame);
      timer ??= setTimeout(flush, batchMs);
      if (waiting.length < maxBatch) return;
      flush();
      await delay(0);
    },
  };
};

/** Follows a run to its end, over dropped connections and restarts, and tells how the stream stands. */
const follow = async (
  { client, signal }: FeedContext,
  runId: string,
  deliver: (frames: readonly Frame[]) => void,
  tell: (status: StreamState['status'], message?: string) => void,
): Promise<void> => {
  const batch = batches(deliver);
  let from: number | undefined;
  const onOpen = (): void => tell('live');
  const onRetry = (error: AcpError): void => tell('reconnecting', error.message);
  for (;;) {
    try {
      const options = { from, signal, onOpen, onRetry, patienceMs: Number.POSITIVE_INFINITY };
      for await (const frame of followEvents(client, runId, options)) {
        from = frame.id ?? from;
        await batch.add(frame);
      }
      batch.flush();
      tell('ended');
      return;
    } catch (error) {
      batch.flush();
      signal.throwIfAborted();
      if (!(error instanceof AcpError)) throw error;
      const { message } = error;
      if (!passesByItself(error)) return tell('failed', message);
      tell('reconnecting', message);
    }
    await pause(retryMs, signal);
  }
};

/** The events of the run on screen. */
export const eventsOf =
  (runId: string): Feed =>
  (context) => {
    const { store } = context;
    return follow(
      context,
      runId,
      (frames) => store.dispatch({ type: 'frames', runId, frames }),
      (status, message = '') => store.dispatch({ type: 'stream', runId, stream: { status, message } }),
    );
  };

/** The tree of the run on screen: often while any of its runs is in progress. */
export const treeOf = (runId: string): Feed => {
  let isLive = true;
  return polling(
    () => (isLive ? treeIntervalMs : closedTreeIntervalMs),
    async ({ client, store, signal }) => {
      const { body: runs } = await client.runs.tree({ params: { runId }, signal });
      isLive = runs.some(isOpen);
      store.dispatch({ type: 'tree', runId, runs });
      return true;
    },
  );
};

const plain = createStyle(false);
/** More than the widest row shows. */
const writtenTail = 400;

const changesStatus = (event: string): boolean => event === 'run.started' || terminalEvents.has(event);

const idle: Activity = { text: '', written: '', totalTokens: null, totalCost: null, currency: null };

/** What a run does after some more of its events. */
const next = (last: Activity, frame: Frame): Activity => {
  const data = frameData(frame);
  if (frame.event === 'message.delta') {
    const text = typeof data['text'] === 'string' ? safeLine(data['text']) : '';
    return { ...last, text: 'writing', written: (last.written + text).slice(-writtenTail) };
  }
  const before = { ...last, written: '' };
  if (frame.event === 'reasoning.delta') return { ...before, text: 'thinking' };
  if (frame.event === 'usage.updated') {
    const usage = data['usage'] as RunUsage | null;
    const cost = data['cost'] as RunCost | null;
    return {
      ...before,
      totalTokens: usage?.totalTokens ?? before.totalTokens,
      totalCost: cost?.totalCost ?? before.totalCost,
      currency: cost?.currency ?? before.currency,
    };
  }
  const line = eventLine(frame.event, data, plain);
  return line === null ? before : { ...before, text: safeLine(line) };
};

/** What one run of the list does at the moment; its row is read anew when its status changes. */
export const activityOf =
  (runId: string): Feed =>
  async (context) => {
    const { client, store, signal } = context;
    let activity = idle;
    const refresh = async (): Promise<void> => {
      const { body: run } = await client.runs.get({ params: { runId }, signal });
      store.dispatch({ type: 'run', run });
    };
    const deliver = (frames: readonly Frame[]): void => {
      for (const frame of frames) activity = next(activity, frame);
      store.dispatch({ type: 'activity', runId, activity });
      // A row that cannot be read at the moment is read with the next page.
      if (frames.some(({ event }) => changesStatus(event))) refresh().catch(() => undefined);
    };
    await follow(context, runId, deliver, () => undefined);
  };
