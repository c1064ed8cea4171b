/** What is recorded of a run: log, rows, spans and metrics. */
export { createElsewherePrices } from './elsewhere-prices.ts';
export { decodePack, encodePack, type LoggedEvent, toFrame } from './event-pack.ts';
export { conventionalFinish, conventionalProvider, failedFinish } from './genai-convention.ts';
export {
  type AttachmentPrint,
  ModelCallRecord,
  type RecordedModelCall,
  readModelCalls,
  type StoredModelCalls,
} from './model-call-record.ts';
export { eventPayload, type PayloadSettings, recordedPayload, sensitiveText } from './payload.ts';
export {
  noToolsHash,
  type PromptHashes,
  promptHasher,
  promptParts,
  redacted,
  redactionMark,
  shownCall,
  textHash,
} from './prompt-hashes.ts';
export type { EngineLog, RecordingSettings, RecordPorts } from './record-ports.ts';
export { type LoggedRunEnd, logRunEnd } from './run-end-log.ts';
export type {
  ExecutedKind,
  OpenedRun,
  RunInputContext,
  RunJournal,
  SessionTurn,
  StoredSpan,
  ToolCallEntry,
  ToolCallSettlement,
} from './run-journal.ts';
export {
  createRunListeners,
  type HeardEvent,
  type ListenedRun,
  type RunEventListener,
  type RunListeners,
} from './run-listeners.ts';
export { RunLog } from './run-log.ts';
export type { LateClosing, UnitFailure } from './run-log-ports.ts';
export { createRunMetrics } from './run-metrics.ts';
export { RunTrace, type TraceOrigin, traceHeadersOf, versionText } from './run-trace.ts';
export {
  createTurnSteps,
  keptMessages,
  type StoredTurn,
  storedTurn,
  type TurnOrigin,
  type TurnStep,
  type TurnSteps,
} from './turn-steps.ts';
