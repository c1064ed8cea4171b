import { randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Logger } from '../../core/logger.ts';
import { endsWithin } from '../../core/time-limit.ts';
import type { Announcements, Listener, Topic } from '../announcements.ts';
import { announcementOfAll, announcementTexts, heartbeatText, readAnnouncement } from './announcement-text.ts';
import { servingLock } from './serving-lock.ts';

/** The one connection of a process that has a state of its own: it listens, and tells what others listen to. */
export interface ListeningConnection {
  query(sql: string, parameters: readonly unknown[]): Promise<unknown>;
  /** Closes it at once, whatever is under way. */
  destroy(): void;
}

export interface AnnouncementOptions {
  /**
   * Connects, and calls `heard` with each notification and `lost` once when the connection is of no use any more. It
   * must lead to the server itself, or through what keeps a connection for as long as it is open.
   */
  connect(events: { heard(text: string): void; lost(error: unknown): void }): Promise<ListeningConnection>;
  /** The same for all processes of a store, and for no other. */
  readonly channel: string;
  readonly log: Pick<Logger, 'warn' | 'error'>;
  /** How often the connection is tried; an answer has as long. Default: 5000. */
  readonly heartbeatMs?: number;
}

export interface PostgresAnnouncements extends Announcements {
  /** This process writes nothing any more: who waits for the store need not wait for it. It still hears the others. */
  standAside(): Promise<void>;
  close(): Promise<void>;
}

// What is told in this time goes together: each notification wakes every process of the store.
const gatherMs = 5;
const mostPending = 10_000;
const firstRetryMs = 100;
const longestRetryMs = 5000;
// A connection that is cut somewhere on its way shows it by nothing but silence.
const heartbeatEachMs = 5000;
const farewellMs = 1000;

const anySpace = /\s/;

/** Announcements over LISTEN and NOTIFY. Nothing depends on them: what is not heard is found by asking the store. */
export const openAnnouncements = ({
  connect,
  channel,
  log,
  heartbeatMs = heartbeatEachMs,
}: AnnouncementOptions): PostgresAnnouncements => {
  const self = randomUUID();
  const listeners = new Map<string, Set<Listener>>();
  let pending = new Map<Topic, Set<string>>();
  let pendingCount = 0;
  /** More was to be told than could be remembered. */
  let overflowed = false;
  let connection: ListeningConnection | null = null;
  /** Counts connections, so that what ends late is not taken for an end of the one that followed. */
  let generation = 0;
  let listens = false;
  let serves = true;
  let isTold = false;
  let closed = false;
  let failures = 0;
  let sending: Promise<void> | null = null;
  let lastSentAt = Number.NEGATIVE_INFINITY;
  let flushTimer: NodeJS.Timeout | NodeJS.Immediate | null = null;
  let retryTimer: NodeJS.Timeout | null = null;
  let heartbeat: NodeJS.Timeout | null = null;
  /** Since when something that this process has told did not come back; null: all of it did. */
  let unechoedSince: number | null = null;

  const each = (topic: string, tell: (listener: Listener) => void): void => {
    for (const listener of listeners.get(topic) ?? [])
      try {
        tell(listener);
      } catch (error) {
        log.error({ error, topic }, 'What listens to other processes has failed');
      }
  };
  const missed = (): void => {
    for (const topic of listeners.keys()) each(topic, (listener) => listener.missed());
  };
  const heard = (text: string): void => {
    const announcement = readAnnouncement(text);
    if (announcement === null) return;
    if (announcement.sender === self) {
      unechoedSince = null;
      return;
    }
    if (announcement.isAll) missed();
    for (const [topic, keys] of announcement.keys)
      for (const key of keys) each(topic, (listener) => listener.heard(key));
  };

  const lost = (error: unknown): void => {
    generation += 1;
    connection?.destroy();
    connection = null;
    listens = false;
    if (heartbeat !== null) clearInterval(heartbeat);
    heartbeat = null;
    if (closed) return;
    if (!isTold)
      log.warn(
        { error },
        'Other processes of the store are not heard: what they change is seen later, by asking for it',
      );
    isTold = true;
    const longestMs = Math.min(firstRetryMs * 2 ** failures, longestRetryMs);
    failures += 1;
    // Those that lost the same server do not all come back in the same moment.
    retryTimer = setTimeout(open, longestMs * (0.5 + Math.random() / 2)).unref();
  };

  const notify = (texts: readonly string[]): Promise<unknown> => {
    if (connection === null) return Promise.reject(new Error('There is no connection.'));
    unechoedSince ??= performance.now();
    return connection.query('select pg_notify($1, announced) from unnest($2::text[]) as announced', [channel, texts]);
  };

  const flush = async (): Promise<void> => {
    const [keys, tellsAll] = [pending, overflowed];
    pending = new Map();
    pendingCount = 0;
    overflowed = false;
    const of = generation;
    lastSentAt = performance.now();
    try {
      await notify([...(tellsAll ? [announcementOfAll(self)] : []), ...announcementTexts(self, keys)]);
    } catch (error) {
      // Whether it was told nobody knows; hearing it twice does no harm.
      overflowed ||= tellsAll;
      for (const [topic, names] of keys) for (const key of names) remember(topic, key);
      if (of === generation) lost(error);
    }
  };
  const scheduleFlush = (): void => {
    if (flushTimer !== null || sending !== null || !listens) return;
    if (pendingCount === 0 && !overflowed) return;
    const start = (): void => {
      flushTimer = null;
      sending = flush().finally(() => {
        sending = null;
        scheduleFlush();
      });
    };
    const waitMs = lastSentAt + gatherMs - performance.now();
    flushTimer = waitMs > 0 ? setTimeout(start, waitMs) : setImmediate(start);
  };
  const remember = (topic: Topic, key: string): void => {
    const keys = pending.getOrInsertComputed(topic, () => new Set());
    if (keys.has(key)) return;
    if (pendingCount >= mostPending) {
      overflowed = true;
      pending.clear();
      pendingCount = 0;
      return;
    }
    keys.add(key);
    pendingCount += 1;
  };

  /** The connection is alone: a server that lends it to others in between does not bring back what was told on it. */
  const beat = async (): Promise<void> => {
    const of = generation;
    try {
      if (unechoedSince !== null && performance.now() - unechoedSince >= heartbeatMs)
        throw new Error(
          'What this process announces does not come back to it; a pooler may lend its connection to others.',
        );
      await notify([heartbeatText(self)]);
    } catch (error) {
      if (of === generation) lost(error);
    }
  };

  const open = async (): Promise<void> => {
    retryTimer = null;
    const of = generation;
    const isCurrent = (): boolean => of === generation && !closed;
    try {
      const opened = await connect({
        heard: (text) => void (isCurrent() && heard(text)),
        lost: (error) => void (isCurrent() && lost(error)),
      });
      if (!isCurrent()) return opened.destroy();
      connection = opened;
      unechoedSince = null;
      if (!(await endsWithin(heartbeatMs, opened.query(`listen ${pg.escapeIdentifier(channel)}`, []))))
        throw new Error('The server does not answer.');
      // While somebody has the store to themselves, this process is deaf.
      if (serves) await opened.query('select pg_advisory_lock_shared(hashtextextended($1, 0))', [servingLock(channel)]);
      if (!isCurrent()) return;
    } catch (error) {
      if (isCurrent()) lost(error);
      return;
    }
    listens = true;
    failures = 0;
    heartbeat = setInterval(beat, heartbeatMs).unref();
    if (isTold) log.warn({}, 'Other processes of the store are heard again');
    isTold = false;
    missed();
    scheduleFlush();
  };
  void open();

  return {
    announce(topic, key) {
      if (closed) return;
      if (anySpace.test(key)) throw new Error(`A key that is announced has no white space: ${topic}`);
      remember(topic, key);
      scheduleFlush();
    },
    listen(topic, listener) {
      const all = listeners.getOrInsertComputed(topic, () => new Set());
      all.add(listener);
      return () => void all.delete(listener);
    },
    deaf: () => !listens,
    async standAside() {
      serves = false;
      // A connection that is lost has given up its locks.
      await connection
        ?.query('select pg_advisory_unlock_shared(hashtextextended($1, 0))', [servingLock(channel)])
        .catch(lost);
    },
    async close() {
      if (closed) return;
      const told = async (): Promise<void> => {
        while (listens && (sending !== null || pendingCount > 0)) {
          scheduleFlush();
          await (sending ?? new Promise((resolve) => setTimeout(resolve, gatherMs)));
        }
      };
      await endsWithin(farewellMs, told());
      closed = true;
      if (retryTimer !== null) clearTimeout(retryTimer);
      if (heartbeat !== null) clearInterval(heartbeat);
      if (flushTimer !== null) clearTimeout(flushTimer as NodeJS.Timeout);
      connection?.destroy();
      connection = null;
    },
  };
};
