import type { SpanKind, SpanStatus } from '../../core/telemetry/span.ts';
import type { Statement } from '../../db/statement.ts';
import type { ModelUsage } from '../../providers/models/model-provider.ts';
import type { AskedSettings, ChatMessage, KeptSummary, ReadResource } from '../context/index.ts';
import type { ModelShare } from '../model-shares.ts';
import type { CostMicros } from '../pricing.ts';
import type { StoredRunError } from '../run-failure.ts';

/** Eval: a run that judges, or one of its children; statistics leave it out. */
export type ExecutedKind = 'Agent' | 'Eval';
/** `External`: another program has executed it. */
export type RecordedKind = ExecutedKind | 'External';

/** What a run was started with beside its messages. */
export interface RunInputContext {
  readonly culture: string | null;
  /** Resolved: defaults are filled in. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Messages of the session that stood before the turn; null without a session. */
  readonly historyLength: number | null;
  /** What of the input its caller gave beside the message, first the instructions as one message. */
  readonly given?: { readonly instructions: boolean; readonly history: number };
  /** What was read of the resources that the agent names; absent: nothing. */
  readonly resources?: readonly ReadResource[];
  /** What its caller decided of the agent; absent: nothing. */
  readonly asked?: AskedSettings;
  /** What the prompts of the run began with in place of messages; absent: nothing. */
  readonly historySummary?: KeptSummary;
}

/** A run as it is first stored. Times are epoch milliseconds. */
export interface OpenedRun {
  readonly id: string;
  readonly tenantId: string;
  /** Default: Agent. */
  readonly kind?: RecordedKind;
  readonly agentName: string;
  readonly agentVersion: number | null;
  /** When that version was saved, 0: an agent of code. Default: not known. */
  readonly agentSavedAt?: number | null;
  readonly status: 'Queued' | 'Running';
  readonly modelProvider: string | null;
  readonly modelId: string | null;
  readonly isStreaming: boolean;
  readonly jobId: string | null;
  readonly sessionId: string | null;
  readonly userId: string | null;
  readonly ownerId: string | null;
  /** The key of the door that it came through. Default: none. */
  readonly door?: string | null;
  /** RemoteTask as JSON, of a run that another system executes. Default: none. */
  readonly remoteTask?: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  readonly parentRunId: string | null;
  readonly rootRunId: string | null;
  readonly continuedFromRunId: string | null;
  /** The run that this one repeats. */
  readonly replayOfRunId?: string | null;
  readonly depth: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  /** Null: the input is not recorded. */
  readonly input: readonly ChatMessage[] | null;
  /** Stored with the input. */
  readonly inputContext?: RunInputContext;
  /** False: it counts for no quota. Default: true. */
  readonly isCounted?: boolean;
  /** Day that it counts in, as YYYY-MM-DD. Default: that of this moment. */
  readonly quotaDay?: string | null;
}

export interface ClosedRun {
  readonly id: string;
  readonly tenantId: string;
  readonly status: 'Completed' | 'Failed' | 'Canceled' | 'AwaitingApproval' | 'AwaitingInput';
  readonly completedAt: number;
  readonly agentVersion: number | null;
  readonly modelProvider: string | null;
  readonly modelId: string | null;
  readonly usage: ModelUsage | null;
  readonly cost: CostMicros | null;
  /** Usage and cost by models. Default: all of it is of the model that is named. */
  readonly shares?: readonly ModelShare[];
  readonly error: StoredRunError | null;
  readonly eventCount: number;
  readonly rootRunId: string | null;
  /** What the whole tree has used, when this is its root. */
  readonly tree: { readonly tokens: number; readonly costMicros: number } | null;
}

export interface ToolCallEntry {
  readonly id: string;
  readonly tenantId: string;
  readonly runId: string;
  readonly toolCallId: string;
  readonly toolName: string;
  readonly source: string | null;
  readonly effect: string;
  readonly idempotencyKey: string;
  readonly arguments: string | null;
  readonly argumentsTruncated: boolean;
  readonly createdAt: number;
}

export interface ToolCallSettlement {
  readonly result: string | null;
  readonly truncated: boolean;
  readonly error: string | null;
  readonly succeeded: boolean;
  readonly authorizationDenied: boolean;
  readonly timedOut: boolean;
  readonly durationMs: number | null;
  readonly usage: unknown;
  readonly settledAt: number;
  /** Order of settling within the run, from 0. */
  readonly order: number;
}

/** A span as it is kept. Times are epoch milliseconds. */
export interface StoredSpan {
  readonly id: string;
  readonly parentId: string | null;
  readonly spanId: string;
  readonly name: string;
  readonly kind: SpanKind;
  readonly startedAt: number;
  /** Null: it went on when its root had closed. */
  readonly endedAt: number | null;
  readonly status: SpanStatus;
  readonly attributes: Readonly<Record<string, string>>;
}

/** The trace of a run tree. Spans are in the order of their starts. */
export interface StoredTrace {
  readonly id: string;
  readonly tenantId: string;
  /** The root. */
  readonly runId: string;
  readonly traceId: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly spans: readonly StoredSpan[];
}

/** How a run is kept: every member compiles writes, the log commits them together with its events. */
export interface RunJournal {
  opened(run: OpenedRun): readonly Statement[];
  /** A queued row that starts: fails its unit when the row is not Queued any more. */
  begun(run: OpenedRun): readonly Statement[];
  closed(run: ClosedRun): readonly Statement[];
  /** Changes nothing, and fails its unit unless the run is Running. */
  open(tenantId: string, runId: string): Statement;
  packed(tenantId: string, runId: string, firstSequence: number, lastSequence: number, events: string): Statement;
  /** The ledger entry that stands before the call is made. */
  toolPending(entry: ToolCallEntry): readonly Statement[];
  toolSettled(entry: ToolCallEntry, settlement: ToolCallSettlement): readonly Statement[];
  /** A call that has asked for input: the one that is made with the answer says how it went. */
  toolAsked(entry: ToolCallEntry, settlement: ToolCallSettlement): readonly Statement[];
  /** A call that ended before it was made: one row, settled from the start. */
  toolRefused(entry: ToolCallEntry, settlement: ToolCallSettlement): readonly Statement[];
  /** A call that the caller's own program has made: one row as well. */
  toolAnswered(entry: ToolCallEntry, settlement: ToolCallSettlement): readonly Statement[];
  /** Calls of the run that have not settled: nobody knows what became of them. */
  toolsUnknown(runId: string): Statement;
  /** What the model calls of a closed run were sent. */
  modelCalls(tenantId: string, runId: string, calls: string): Statement;
  /** What is known of the task of another system that a run waits for, as JSON. */
  remoteTask(tenantId: string, runId: string, task: string): Statement;
  /** The spans of a tree, with its root. */
  trace(trace: StoredTrace): Statement;
  step(tenantId: string, runId: string, sequence: number, content: string): Statement;
  stepsDropped(runId: string): Statement;
}

/** The session side of one turn, made by the sessions feature when it takes the lock. */
export interface SessionTurn {
  readonly sessionId: string;
  readonly history: readonly ChatMessage[];
  /** What stands for the beginning of the history in prompts; null: nothing was summed up yet. */
  readonly summary: KeptSummary | null;
  /**
   * Appends the turn, conditional on the version that was read, and frees the session. `summary` of the history with
   * this turn takes the place of the one before; null leaves that.
   */
  save(messages: readonly ChatMessage[], summary: KeptSummary | null, now: number): readonly Statement[];
  /** Frees the session and stores nothing. */
  release(): readonly Statement[];
  /** The same for a run that comes back: it keeps its place in line. */
  stepBack(): readonly Statement[];
  /** Called once the run has closed. */
  ended(): void;
}
