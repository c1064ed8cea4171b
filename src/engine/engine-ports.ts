import type { Clock } from '../core/clock.ts';
import type { StopSwitch } from '../core/emergency.ts';
import type { Telemetry } from '../core/telemetry/telemetry.ts';
import type { LazyUnit } from '../db/commit-queue.ts';
import type { Statement } from '../db/statement.ts';
import type { CallProtection } from '../providers/models/protection/call-protection.ts';
import type { ProviderAccess } from '../providers/models/provider-access.ts';
import type { ChildPlans, RunPlan } from './active-run.ts';
import type { AgentMemory } from './context/agent-memory.ts';
import type { RunAttachments } from './context/run-attachments.ts';
import type { ApprovalGate } from './control/approval-gate.ts';
import type { ContentGuards } from './control/guards/guard-port.ts';
import type { PauseJournal } from './control/pause-journal.ts';
import type { RunQuotas } from './control/run-quotas.ts';
import type { TreeLimits } from './control/tree-budget.ts';
import type { PriceList } from './pricing.ts';
import type { PayloadSettings } from './record/payload.ts';
import type { RunJournal } from './record/run-journal.ts';
import type { RunListeners } from './record/run-listeners.ts';
import type { RunMetrics } from './record/run-metrics.ts';
import type { RunFailure } from './run-failure.ts';
import type { ToolCallDeps } from './tools/tool-call.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from './turn/host-extensions.ts';
import type { ResponseCache } from './turn/response-cache.ts';

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

export interface EngineSettings {
  readonly recording: RecordingSettings;
  readonly tree: TreeLimits;
  /** Rounds of model and tools before the model is asked once more without tools. */
  readonly maxIterations: number;
  /** Tool errors in a row that are tolerated. */
  readonly maxConsecutiveToolErrors: number;
  /** Which runs store their turn step by step: those that may be continued, those that may be retried. */
  readonly steps: { readonly continuation: boolean; readonly retries: boolean };
  readonly childDeadlineMs: number | null;
  readonly waitTimeoutMs: number | null;
  readonly structuredResponse: {
    readonly enabled: boolean;
    /** Further model calls that one run may spend on a rejected answer. */
    readonly maxRepairAttempts: number;
  };
}

/** What becomes of a run that its process cannot finish. */
export interface UnfinishedRuns {
  /** Writes that put the run back in line for another attempt; null when this was its last. */
  requeue(plan: RunPlan, failure: RunFailure): readonly Statement[] | null;
  /** Writes that have the turn of a closed run continued by another run; none when it is not. */
  continuation(plan: RunPlan, failure: RunFailure): readonly Statement[];
  /** The principal as it is stored with a turn. */
  packPrincipal(plan: RunPlan): unknown;
}

/** Everything the engine needs of the outside, and what it counts with. */
export interface EnginePorts {
  readonly children: ChildPlans;
  readonly journal: RunJournal;
  readonly prices: PriceList;
  readonly responses: ResponseCache;
  /** What a tenant may call, and with whose credential. */
  readonly access: Pick<ProviderAccess, 'open'>;
  /** What every model call passes first. */
  readonly protection: Pick<CallProtection, 'admit'>;
  readonly telemetry: Telemetry;
  readonly tools: ToolCallDeps;
  readonly attachments: RunAttachments;
  /** Null: no guard is registered, so nothing is inspected or held back. */
  readonly guards: ContentGuards | null;
  readonly memory: AgentMemory;
  /** Of modules, by agent name. */
  readonly structuredResponseValidators: ReadonlyMap<string, StructuredResponseValidator>;
  /** Of modules, by kind. */
  readonly loopCriteria: ReadonlyMap<string, LoopCriterionEvaluator>;
  readonly approvals: ApprovalGate;
  readonly pauses: PauseJournal;
  /** Null: runs are not counted. */
  readonly quotas: RunQuotas | null;
  readonly settings: EngineSettings;
  readonly unfinished: UnfinishedRuns;
  readonly stops: StopSwitch;
  /** Null: no module listens to events. */
  readonly listeners: RunListeners | null;
  readonly log: EngineLog;
  readonly metrics: RunMetrics;
  enqueue(unit: LazyUnit): void;
  /** Writes one unit once the store takes it again. */
  closeLater(runId: string, statements: readonly Statement[]): void;
  readonly now: Clock['now'];
  readonly after: Clock['after'];
  newId(): string;
}
