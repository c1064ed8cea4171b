import { flowLimits, highestPriority, singletonModes } from '../../../contract/flow-settings.ts';
import { age, int } from '../number-kinds.ts';
import { group, mapOf, optional, required, section, setting, type ValueOf } from '../schema-nodes.ts';
import { jsonPointer } from '../text-kinds.ts';
import { oneOf } from '../value-kind.ts';

const { mostStarts, shortestMs, longestMs, longestKey } = flowLimits;

const key = optional(
  jsonPointer(longestKey),
  'What counts apart: a place in the request of a run, or in the payload of a job. Null: all of them together.',
);
const limit = int({ min: 1, max: mostStarts });
const length = age({ min: shortestMs, max: longestMs });
const priority = int({ min: -highestPriority, max: highestPriority });

const windowLimit = {
  Limit: required(limit, 'So many in each window.'),
  Window: required(length, 'Length of a window.'),
  Key: key,
};

/** How queued runs and jobs of schedules are let into a lane. */
export const laneFlow = group('The flow of one lane. Each tenant counts by itself.', {
  RateLimit: section('What is over it is recorded as Canceled and does not start.', windowLimit),
  Throttle: section('What is over it starts in the next window that has room.', windowLimit),
  Debounce: section('Each takes the place of the one that waits. Not with Throttle or Singleton.', {
    Window: required(length, 'How long one waits for another to take its place.'),
    MaxWait: optional(length, 'How long after the first of them one starts at the latest.'),
    Key: key,
  }),
  Singleton: section('While one waits or executes, others are recorded as Canceled, or take its place.', {
    Mode: setting(oneOf(singletonModes), 'Skip', 'Skip: the later one is dropped. Replace: the earlier one is.'),
    Key: key,
  }),
  Concurrency: section('What is over it waits until another one is no longer at work.', {
    Limit: required(limit, 'So many are at work at once, over all processes.'),
    Key: key,
  }),
  Priority: section('Of what waits of a tenant that with a higher one starts first.', {
    Key: optional(
      jsonPointer(longestKey),
      'Where the priority is, or the value that stands for one. Null: Default, for all.',
    ),
    Values: mapOf('{value}', required(priority, 'Priority of what has this value.'), 'Priorities by what is at Key.'),
    Default: setting(priority, 0, 'Where Key finds none.'),
  }),
});

export type LaneFlowSettings = ValueOf<typeof laneFlow>;
