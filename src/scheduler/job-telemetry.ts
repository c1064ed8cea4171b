import type { Telemetry } from '../core/telemetry/telemetry.ts';
import { parseTraceparent, type TraceParent } from '../core/telemetry/trace-context.ts';
import type { QueuedJob } from './job-queue.ts';

/** One attempt at a job, as it is watched; its first end counts. */
export interface JobWatch {
  /** The attempt's span, for the spans of its work; null where nothing is exported. */
  readonly trace: TraceParent | null;
  /** How the attempt ended, once that is stored; `isFinal`: the job has ended with it. */
  ended(status: 'Completed' | 'Failed' | 'Canceled', isFinal: boolean, errorType: string | null): void;
  /** The job went back in line, and the attempt does not count. */
  released(): void;
}

export interface JobTelemetry {
  began(job: QueuedJob): JobWatch;
  /** A job that failed without an attempt of this process. */
  lost(job: Pick<QueuedJob, 'handlerKey' | 'lane'>): void;
  /** The name of a lane in metrics: `other` for one of too many. */
  laneName(lane: string): string;
}

/** Names of lanes come with jobs: the first so many of a process are told apart. */
const createLaneNames = (max: number): ((lane: string) => string) => {
  const lanes = new Set<string>();
  return (lane) => {
    if (lanes.has(lane)) return lane;
    if (lanes.size >= max) return 'other';
    lanes.add(lane);
    return lane;
  };
};

/** W3C Trace Context of the span that queued a job, where its payload has one. */
const linkOf = (job: QueuedJob): TraceParent | null => {
  try {
    const { payload } = job;
    return typeof payload === 'object' && payload !== null && 'trace' in payload
      ? parseTraceparent(payload.trace)
      : null;
  } catch {
    // A payload that cannot be read is told by the handler, which needs it.
    return null;
  }
};

const key = 'acp.job.handler_key';
const laneAttribute = 'acp.job.lane';
const endAttributes = [key, laneAttribute, 'acp.job.status'];

/** Counts what workers do, and traces it where traces are exported. */
export const createJobTelemetry = (telemetry: Telemetry, maxLanes: number, now: () => number): JobTelemetry => {
  const { metrics } = telemetry;
  const laneName = createLaneNames(maxLanes);
  const executions = metrics.counter('acp.job.executions', 'Jobs that ended.', '{job}', endAttributes);
  const duration = metrics.histogram('acp.job.duration', 'Time of one attempt at a job.', 's', endAttributes);
  const wait = metrics.histogram('acp.job.wait', 'Time from when a job was due until a worker first took it.', 's', [
    key,
    laneAttribute,
  ]);

  return {
    laneName,
    lost: ({ handlerKey, lane }) => executions.add(1, [handlerKey, laneName(lane), 'Failed']),
    began(job) {
      const { handlerKey, waitedMs } = job;
      const lane = laneName(job.lane);
      const startedAt = now();
      if (waitedMs !== null) wait.record(Math.max(0, waitedMs) / 1000, [handlerKey, lane]);
      const span = telemetry.begin('acp.job', 'Consumer', null, {
        'acp.tenant.id': job.tenantId,
        'acp.job.id': job.id,
        'acp.job.handler_key': handlerKey,
        'acp.job.lane': job.lane,
        'acp.job.attempt': job.attempt,
      });
      const link = span === null ? null : linkOf(job);
      if (span !== null && link !== null) span.links = [link];
      let isOver = false;
      return {
        trace: span,
        ended(status, isFinal, errorType) {
          if (isOver) return;
          isOver = true;
          duration.record((now() - startedAt) / 1000, [handlerKey, lane, status]);
          if (isFinal) executions.add(1, [handlerKey, lane, status]);
          span?.set({ 'acp.job.status': isFinal ? status : 'Pending' });
          telemetry.finish(span, errorType);
        },
        released() {
          isOver = true;
          span?.set({ 'acp.job.status': 'Pending' });
          telemetry.finish(span);
        },
      };
    },
  };
};
