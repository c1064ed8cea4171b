import { type JobStore, observeJobDepth, workerHeartbeatStore } from '../features/jobs/index.ts';
import { createJobTelemetry, type JobTelemetry } from '../scheduler/job-telemetry.ts';
import { createJobWorker, type JobWorker, type WorkerPorts } from '../scheduler/job-worker.ts';
import { createWorkerHeartbeats } from '../scheduler/worker-heartbeats.ts';
import type { Foundation } from './foundation.ts';
import { jobWorkerOptions } from './options.ts';

type WorkerBase = Foundation['base'];

/** What is counted and traced of the jobs of this process, and how long the queue is where that is asked for. */
export const watchJobs = ({ config, telemetry, lifecycle, log, now }: WorkerBase, store: Pick<JobStore, 'depth'>) => {
  const { EnableJobQueueDepthGauge, MaxJobLaneCardinality } = config.Service.Observability;
  const jobs = createJobTelemetry(telemetry, MaxJobLaneCardinality, now);
  if (EnableJobQueueDepthGauge) observeJobDepth({ telemetry, store, laneName: jobs.laneName, lifecycle, log });
  return jobs;
};

/** The worker of this process, and what those of other processes tell it. */
export const composeWorker = (
  base: WorkerBase,
  {
    queue,
    handlers,
    telemetry,
    lost,
    places,
  }: Pick<WorkerPorts, 'handlers' | 'lost' | 'places'> & {
    readonly queue: JobStore;
    readonly telemetry: JobTelemetry;
  },
) => {
  // Leases and when a job is due are compared by all processes.
  const { announcements, storeClock: clock, log } = base;
  const options = jobWorkerOptions(base.config);
  const worker: JobWorker = createJobWorker(
    {
      queue,
      handlers,
      lost,
      places,
      tellOthers: (dueAt) => announcements.announce('jobs', String(dueAt)),
      telemetry,
      clock,
      log,
    },
    options,
  );
  announcements.listen('jobs', {
    heard: (dueAt) => worker.told(Number(dueAt)),
    missed: () => worker.told(null),
  });
  announcements.listen('cancel', { heard: worker.toldToStop, missed: () => worker.toldToStop(null) });
  // The owner of a store frees what its predecessor had when it starts.
  const heartbeats = base.isShared
    ? createWorkerHeartbeats(
        {
          store: base.storage.stores(workerHeartbeatStore),
          clock,
          log,
          missed: () => void worker.renew(),
          ended: worker.leasesEnded,
        },
        options.owner,
      )
    : null;
  return { worker, heartbeats };
};
