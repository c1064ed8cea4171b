import type { Clock } from '../../core/clock.ts';
import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { PayloadSettings } from './payload.ts';
import type { RunJournal } from './run-journal.ts';
import type { RunMetrics } from './run-metrics.ts';

export interface EngineLog {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export interface RecordingSettings extends PayloadSettings {
  /** False: no row, no log, no ledger; runs still work and stream. */
  readonly enabled: boolean;
  readonly recordMessageDeltas: boolean;
  readonly recordReasoningDeltas: boolean;
  readonly recordRunInput: boolean;
}

/** Where a run is recorded: rows, spans, metrics and the service's own log. */
export interface RecordPorts {
  readonly journal: RunJournal;
  readonly telemetry: Telemetry;
  readonly metrics: RunMetrics;
  readonly log: EngineLog;
  readonly settings: { readonly recording: RecordingSettings };
  readonly now: Clock['now'];
  newId(): string;
}
