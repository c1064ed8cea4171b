import { secondMs } from '../duration.ts';
import { duration, int, ratio } from '../number-kinds.ts';
import { flag, group, setting } from '../schema-nodes.ts';

export const recordingSettings = {
  Observability: group('Spans, metrics and traces. Export follows the OTEL_* variables.', {
    Enabled: flag(true, 'Whether any are made.'),
    PersistSpans: flag(true, 'Traces are kept in the store.'),
    SuccessSampleRatio: setting(ratio(), 0.1, 'Share of successful runs whose trace is kept.'),
    AlwaysPersistFailures: flag(true, 'The trace of a failed run is always kept.'),
    MaxSpansPerRun: setting(int({ min: 1 }), 200, 'Spans kept of one run.'),
    RecordSensitiveData: flag(false, 'Messages and tool data appear in spans.'),
    IncludeAgentVersionTag: flag(true, 'Spans and metrics name the version of the agent.'),
    EnableQuotaUsageGauge: flag(false, 'Metrics tell how far quotas are used.'),
    QuotaUsageRefreshInterval: setting(duration(), 30 * secondMs, 'How often those metrics are read from the store.'),
    EnableJobQueueDepthGauge: flag(false, 'Metrics tell how many jobs wait and are at work.'),
    MaxJobLaneCardinality: setting(int({ min: 1 }), 64, 'Lanes that metrics tell apart; further ones are "other".'),
  }),
  RunRecording: group('What is stored of a run.', {
    Enabled: flag(true, 'Runs are stored. Without it they work, but leave no trace and cannot be queued.'),
    RecordMessageDeltas: flag(true, 'The parts of a streamed message are stored with their text.'),
    RecordReasoningDeltas: flag(false, "The text of a model's reasoning is stored."),
    RecordToolPayloads: flag(true, 'Arguments and results of tools are stored.'),
    MaxPayloadLength: setting(
      int({ min: 0, max: 1_048_576 }),
      8192,
      'Characters kept of arguments, results and payloads. 0: all.',
    ),
    RecordRunInput: flag(true, 'The input is stored, as a replay needs it.'),
  }),
};
