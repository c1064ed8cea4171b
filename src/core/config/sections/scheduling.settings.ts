import { minuteMs, secondMs } from '../duration.ts';
import { age, duration, int } from '../number-kinds.ts';
import { flag, group, mapOf, optional, required, setting } from '../schema-nodes.ts';
import { lane, text } from '../text-kinds.ts';
import { listOf } from '../value-kind.ts';
import { laneFlow } from './lane-flow.settings.ts';

const laneName = { pattern: /^[a-z0-9][a-z0-9._-]{0,63}$/, expected: 'a lane name (1 to 64 of a-z 0-9 . _ -)' };

/** Jobs, leases, runs that lost their process, and the orderly stop. */
export const schedulingSettings = {
  Scheduling: group('The job queue and its worker.', {
    Enabled: flag(true, 'Jobs can be queued and planned.'),
    RunWorker: flag(true, 'This process works on jobs. Without it, it only queues them.'),
    MaxConcurrentJobs: setting(int({ min: 1 }), 2, 'Jobs this process works on side by side.'),
    PollInterval: setting(duration(), 10 * secondMs, 'Pause between looks for work that another process queued.'),
    LeaseDuration: setting(
      duration({ min: 10 * secondMs }),
      5 * minuteMs,
      'Time a job stays reserved without a sign of life; renewed at half of it.',
    ),
    MaxAttempts: setting(int({ min: 1 }), 3, 'Attempts before a job counts as failed.'),
    MaxItemsPerJob: setting(int({ min: 1 }), 1000, 'Items of a batch job and cases of an evaluation.'),
    MaxConcurrentItems: setting(int({ min: 1 }), 4, 'Items of one batch job that this process works on side by side.'),
    Lanes: setting(listOf(lane(), { unique: true }), [], 'Lanes this process serves. Empty: all of them.'),
    MaxConcurrentJobsPerLane: mapOf(
      '{lane}',
      required(int({ min: 1 }), 'Jobs of the lane that this process works on side by side.'),
      'Limits of single lanes.',
      laneName,
    ),
    LaneByHandlerKey: mapOf(
      '{handlerKey}',
      required(lane(), 'Lane of such jobs when none is named.'),
      'Lanes of kinds of jobs.',
    ),
    LaneFlows: mapOf(
      '{lane}',
      laneFlow,
      'How queued runs and jobs of schedules are let into single lanes, with the members that a flow of an agent has.',
      laneName,
    ),
    SchedulableHandlerKeys: optional(
      listOf(text(), { unique: true }),
      'Kinds of jobs that schedules may start. Null: all that are not internal.',
    ),
  }),
  AsyncRun: group('Runs that are queued and answered later.', {
    Enabled: flag(true, 'Runs can be queued.'),
    MaxAttempts: setting(int({ min: 1 }), 1, 'Attempts of a queued run.'),
  }),
  SingletonExecution: group('Background work that only one of several processes does.', {
    Enabled: flag(false, 'Processes agree on who does it.'),
    LeaseDuration: setting(
      duration({ min: 3 * secondMs }),
      60 * secondMs,
      'Time until another process may take over; renewed at a third of it.',
    ),
    OwnerId: optional(
      text({ max: 128 }),
      'Name of this process, which no other one may have. Null: made up at the start.',
    ),
  }),
  RunReconciliation: group('Runs whose process died, where several processes share a store.', {
    Enabled: flag(false, 'Such runs are found and closed.'),
    HeartbeatInterval: setting(duration(), 30 * secondMs, 'How often a running run gives a sign of life.'),
    OrphanThreshold: setting(
      age(),
      5 * minuteMs,
      'Silence after which a run counts as lost. Must be more than two heartbeats.',
    ),
    ScanInterval: setting(duration(), minuteMs, 'Pause between searches.'),
    MaxRunsPerScan: setting(int({ min: 1 }), 100, 'Runs one search closes.'),
  }),
  RunContinuation: group('Going on with runs that were lost.', {
    Enabled: flag(false, 'A lost run is continued by a new one. Needs RunReconciliation.'),
    MaxAttempts: setting(int({ min: 1 }), 1, 'Continuations of one lost run.'),
  }),
  RunCancellation: group('Cancels of runs, where several processes share a store.', {
    Forward: flag(
      false,
      'A cancel that reaches another process than the one of the run is passed on to that one. Otherwise it is refused.',
    ),
  }),
  Drain: group('The orderly stop.', {
    Enabled: flag(true, 'Work in progress may finish before the process ends.'),
    Timeout: setting(duration({ zero: true }), 30 * secondMs, 'How long it may take to.'),
  }),
};
