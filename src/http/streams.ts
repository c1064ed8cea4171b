import type { ServerResponse } from 'node:http';
import type { Frame, StreamReply } from '../contract/operation.ts';
import { ChurningMap } from '../core/churning-map.ts';
import type { Logger } from '../core/logger.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { answerHeaders, type Exchange } from './answer.ts';

export interface StreamLimits {
  /** A comment keeps a stream alive after this long without a frame. */
  readonly pingMs: number;
  /** A reader with more than this unread is cut off; it resumes from the log. */
  readonly maxBehindBytes: number;
}

export const defaultStreamLimits: StreamLimits = { pingMs: 15_000, maxBehindBytes: 1_048_576 };

interface OpenStream {
  /** Of its request. */
  readonly id: string;
  readonly raw: ServerResponse;
  /** A run's own answer, or the log of one. */
  readonly kind: 'run' | 'events';
  idleTicks: number;
}

/** Ticks between two pings: the comment comes at most one tick, a fifteenth of the time, late. */
const ticksPerPing = 15;

const streamFields = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
};

const frameText = ({ id, event, data }: Frame): string => {
  const named = event === '' ? `data: ${data}\n\n` : `event: ${event}\ndata: ${data}\n\n`;
  return id === undefined ? named : `id: ${id}\n${named}`;
};

const dataText = ({ id, data }: Frame): string =>
  id === undefined ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`;

const batchText = (frames: readonly Frame[], framing: StreamReply['framing']): string => {
  const textOf = framing === 'data' ? dataText : frameText;
  let text = '';
  for (const frame of frames) text += textOf(frame);
  return text;
};

const untilDrained = (raw: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      raw.off('drain', done).off('close', done);
      resolve();
    };
    raw.on('drain', done).on('close', done);
  });

export type StreamHub = ReturnType<typeof createStreamHub>;

/** Writes frames as server-sent events. All open streams share one timer for their keep-alive comments. */
export const createStreamHub = (
  { pingMs, maxBehindBytes }: StreamLimits,
  log: Logger,
  { metrics }: Pick<Telemetry, 'metrics'>,
) => {
  const open = metrics.upDown('acp.sse.streams', 'Event streams that are open.', '{stream}', ['acp.sse.kind']);
  const streams = new ChurningMap<string, OpenStream>();
  let ticker: NodeJS.Timeout | undefined;

  const tick = (): void => {
    for (const stream of streams.values()) {
      stream.idleTicks += 1;
      if (stream.idleTicks < ticksPerPing) continue;
      stream.idleTicks = 0;
      stream.raw.write(':\n\n');
    }
  };
  const add = (stream: OpenStream): void => {
    streams.set(stream.id, stream);
    open.add(1, [stream.kind]);
    if (ticker !== undefined) return;
    ticker = setInterval(tick, Math.max(1, pingMs / ticksPerPing));
    ticker.unref();
  };
  const remove = (stream: OpenStream): void => {
    if (!streams.delete(stream.id)) return;
    open.add(-1, [stream.kind]);
    if (streams.size > 0) return;
    clearInterval(ticker);
    ticker = undefined;
  };

  return {
    /** Answers with an event stream until the source ends or the caller goes away. Throws only before anything is written. */
    open(exchange: Exchange, reply: StreamReply): void {
      const { raw } = exchange;
      const headers = answerHeaders(exchange, { ...streamFields, ...reply.headers });
      const stream: OpenStream = {
        id: exchange.requestId,
        raw,
        kind: exchange.method === 'GET' ? 'events' : 'run',
        idleTicks: 0,
      };
      let ended = raw.destroyed;
      const finish = (): void => {
        ended = true;
        remove(stream);
      };
      const unsubscribe = reply.stream.subscribe(
        (frames) => {
          if (ended) return;
          stream.idleTicks = 0;
          // The first batch takes the status line with it, in one packet.
          // What is unread of earlier batches tells a slow reader; a single batch may be of any size.
          if (raw.writableLength > maxBehindBytes) {
            log.info({ requestId: exchange.requestId, path: exchange.path }, 'A slow reader was cut off');
            raw.destroy();
            return;
          }
          if (!raw.headersSent) raw.writeHead(reply.status, headers);
          raw.write(batchText(frames, reply.framing));
        },
        () => {
          if (ended) return;
          finish();
          if (!raw.headersSent) raw.writeHead(reply.status, headers);
          raw.end();
        },
        () => (raw.writableNeedDrain && !raw.destroyed ? untilDrained(raw) : undefined),
      );
      if (ended || raw.destroyed) {
        unsubscribe();
        return;
      }
      add(stream);
      raw.once('close', () => {
        if (ended) return;
        finish();
        unsubscribe();
      });
      if (raw.headersSent) return;
      raw.writeHead(reply.status, headers);
      raw.flushHeaders();
    },
  };
};
