import type { Clock } from '../../core/clock.ts';
import type { ModelPart } from '../../providers/models/model-provider.ts';
import type { CallProtection } from '../../providers/models/protection/call-protection.ts';
import type { ProviderAccess } from '../../providers/models/provider-access.ts';
import type { ChildPlans } from '../active-run.ts';
import type { AgentMemory } from '../context/index.ts';
import type { ApprovalPorts, ContentGuards, QuotaPorts } from '../control/index.ts';
import type { RecordingSettings, RecordPorts } from '../record/index.ts';
import type { ToolCallDeps } from '../tools/index.ts';
import type { LoopCriterionEvaluator, StructuredResponseValidator } from './answer-checks.ts';

/** Answers of models by call. A cache never fails a run: what cannot be read is a miss, what cannot be kept is not. */
export interface ResponseCache {
  /** The answer to an equal call of the tenant that is at most `lifetimeMs` old. */
  find(tenantId: string, key: string, lifetimeMs: number): Promise<readonly ModelPart[] | null>;
  /** Returns at once. Equal calls may come at the same time: the last one stays. */
  keep(tenantId: string, key: string, lifetimeMs: number, parts: readonly ModelPart[]): void;
}

/** What a model call needs of the outside. */
export interface ModelPorts extends Omit<RecordPorts, 'journal'>, QuotaPorts {
  readonly responses: ResponseCache;
  /** What a tenant may call, and with whose credential. */
  readonly access: Pick<ProviderAccess, 'open' | 'current'>;
  /** What every model call passes first. */
  readonly protection: Pick<CallProtection, 'admit'>;
  /** Null: no guard is registered, so nothing is inspected or held back. */
  readonly guards: ContentGuards | null;
  readonly tools: Pick<ToolCallDeps, 'authorizer'>;
}

/** What a tool call needs of the outside. */
export interface ToolPorts extends RecordPorts, ApprovalPorts {
  readonly tools: ToolCallDeps;
  readonly guards: ContentGuards | null;
  readonly settings: {
    readonly recording: RecordingSettings;
    /** Tool errors in a row that are tolerated. */
    readonly maxConsecutiveToolErrors: number;
  };
}

/** What decides after an answer whether the turn goes on. */
export interface LoopPorts extends ModelPorts {
  readonly memory: AgentMemory;
  /** Of modules, by kind. */
  readonly loopCriteria: ReadonlyMap<string, LoopCriterionEvaluator>;
}

/** What decides whether an answer has the format that is asked for. */
export interface AnswerPorts extends Pick<RecordPorts, 'log'> {
  /** Of modules, by agent name. */
  readonly structuredResponseValidators: ReadonlyMap<string, StructuredResponseValidator>;
  readonly settings: {
    readonly structuredResponse: {
      readonly enabled: boolean;
      /** Further model calls that one run may spend on a rejected answer. */
      readonly maxRepairAttempts: number;
    };
  };
}

/** What calls of other agents need. */
export interface ChildPorts extends Pick<Clock, 'now' | 'after'> {
  readonly children: ChildPlans;
  readonly settings: { readonly childDeadlineMs: number | null; readonly waitTimeoutMs: number | null };
}

export interface TurnPorts extends LoopPorts, ToolPorts, AnswerPorts {
  readonly tools: ToolCallDeps;
  readonly settings: ToolPorts['settings'] &
    AnswerPorts['settings'] & {
      /** Rounds of model and tools before the model is asked once more without tools. */
      readonly maxIterations: number;
    };
}
