import type { TraceParent } from '../core/telemetry/trace-context.ts';
import type {
  ModelCatalogEntry,
  ModelJson,
  ModelProvider,
  ModelResponseFormat,
  ModelSampling,
  ModelTool,
  ModelToolChoice,
  VectorRequest,
} from '../providers/models/model-provider.ts';
import { RunFailure } from './run-failure.ts';
import type { RegisteredTool } from './tools/index.ts';

/** One provider and model, ready to be called. */
export interface CompiledTarget {
  readonly provider: ModelProvider;
  readonly model: string;
  /** The model's catalog entry, null when it is not listed. */
  readonly catalog: ModelCatalogEntry | null;
  /** The binding's provider settings for this provider, prefix removed. */
  readonly settings: Readonly<Record<string, ModelJson>>;
}

export interface CompiledBinding extends CompiledTarget {
  readonly fallbacks: readonly CompiledTarget[];
  readonly temperature: number | null;
  readonly topP: number | null;
  readonly maxOutputTokens: number | null;
  readonly reasoningEffort: string | null;
  readonly responseFormat: ModelResponseFormat | null;
  readonly allowConcurrentToolCalls: boolean;
  /** How old the answer to an equal call may be; null: every call reaches the model. */
  readonly responseCacheMs: number | null;
  /** Of a run whose caller has decided it; absent: as the model sees fit. */
  readonly toolChoice?: ModelToolChoice;
  /** Of a run whose caller has decided it; absent: the provider's own. */
  readonly sampling?: ModelSampling;
  /** Its run asks for vectors in place of an answer. */
  readonly vectors?: VectorRequest;
}

export type CompactionStrategy =
  | 'SlidingWindow'
  | 'Truncation'
  | 'ToolResult'
  | 'Summarization'
  | 'ContextWindow'
  | 'Pipeline';

/** How a history is shortened before it is sent; defaults applied. A trigger that is null never fires. */
export interface CompactionPlan {
  readonly strategy: CompactionStrategy;
  readonly triggerTokens: number | null;
  readonly triggerMessages: number | null;
  readonly triggerTurns: number | null;
  readonly minimumPreservedTurns: number;
  readonly minimumPreservedGroups: number;
  /** Largest prompt of ContextWindow: the window less what is left to the answer. Null for the other strategies. */
  readonly maxPromptTokens: number | null;
  /** Null: the built-in one. */
  readonly summarizationPrompt: string | null;
  readonly summaryModel: CompiledBinding;
}

export const builtInCriteria = ['completionMarker', 'todoCompletion', 'aiJudge', 'backgroundTaskCompletion'] as const;

/** One condition under which a loop ends; which members count depends on the kind. */
export interface LoopCriterion {
  /** A built-in kind, or one that a module registered. */
  readonly kind: string;
  readonly marker: string | null;
  readonly judgeCriteria: readonly string[];
  readonly judgeInstructions: string | null;
  /** Modes in which open todo entries count; empty: in all. */
  readonly modes: readonly string[];
}

export interface LoopPlan {
  readonly criteria: readonly LoopCriterion[];
  readonly maxIterations: number;
  readonly freshContextPerIteration: boolean;
  /** Model of aiJudge. */
  readonly judgeModel: CompiledBinding;
}

/** What holds queued runs back, for each value at `key` of their requests. */
export interface AgentFlow {
  /** Those over it are dropped. */
  readonly rateLimit: WindowLimit | null;
  /** Those over it wait for a later window. */
  readonly throttle: WindowLimit | null;
  /** Each takes the place of the one that waits, and waits anew, at most `maxWaitMs` after the first. */
  readonly debounce: {
    readonly windowMs: number;
    readonly maxWaitMs: number | null;
    readonly key: string | null;
  } | null;
  /** While one waits or executes, others are dropped, or take its place. */
  readonly singleton: { readonly mode: 'Skip' | 'Replace'; readonly key: string | null } | null;
  /** So many are at work at once, and others wait until one is no longer. */
  readonly concurrency: { readonly limit: number; readonly key: string | null } | null;
  /** Higher ones go first: that of the value at `key`, or the value itself where there are no `values`. */
  readonly priority: {
    readonly key: string | null;
    readonly values: Readonly<Record<string, number>> | null;
    readonly default: number;
  } | null;
}

/** So many starts in each window. */
export interface WindowLimit {
  readonly limit: number;
  readonly windowMs: number;
  /** JSON Pointer; null: all runs count together. */
  readonly key: string | null;
}

/** What the engine needs of an agent: references resolved, defaults applied, nothing left to look up. Immutable and cached. */
export interface CompiledAgent {
  readonly name: string;
  readonly version: number;
  readonly origin: 'code' | 'database';
  /**
   * When this version was saved, epoch milliseconds; null where it was not. Tells it from the same version of an agent that was
   * created again under the name.
   */
  readonly savedAt: number | null;
  readonly model: CompiledBinding;
  /** Tools by the name the model sees, registered ones and callable agents alike. */
  readonly tools: ReadonlyMap<string, CompiledTool>;
  /** The same tools as they are declared to the model, in the definition's order. */
  readonly modelTools: readonly ModelTool[];
  /** Tools that the model has to look for, as they would be declared to it; null: all of them are among `modelTools`. */
  readonly withheldTools: readonly ModelTool[] | null;
  /** True: every call of a tool needs an approval, whatever the tool says. */
  readonly asksForEveryTool: boolean;
  readonly subAgents: { readonly childDeadlineMs: number | null; readonly waitTimeoutMs: number | null };
  /** What its queued runs are let in by; null: all start as soon as a worker is free. */
  readonly flow: AgentFlow | null;
  /** Values for this run's placeholders; throws `parameter-invalid` with a finding per parameter. */
  resolveParameters(values: Readonly<Record<string, string>> | null): Readonly<Record<string, string>>;
  /** True: the provider's own web search is offered, where it has one. */
  readonly webSearch: boolean;
  /** Null: the whole history is sent. */
  readonly compaction: CompactionPlan | null;
  /** Null: the run completes with its first answer. */
  readonly loop: LoopPlan | null;
  /** Resources of remote servers that each of its runs begins with, as `{server}:{uri}`. */
  readonly resources: readonly string[];
  /** Rounds of model and tools; null: `Tools:MaxIterations`. */
  readonly maxIterations: number | null;
  /** True: the run may leave todo entries, files or a mode. */
  readonly hasMemory: boolean;
  /** True: the system text names the mode in which the agent is. */
  readonly hasModes: boolean;
  /** The system text for a culture and a mode, placeholders replaced; null when there is none. */
  instructions(
    culture: string | null,
    parameters: Readonly<Record<string, string>>,
    mode?: string | null,
  ): string | null;
}

/** When the version was saved, as rows keep it: 0 for an agent of code, since null says there that it is not known. */
export const storedSavedAt = ({ savedAt }: Pick<CompiledAgent, 'savedAt'>): number => savedAt ?? 0;
/** The same as `compileVersion` takes it. */
export const readSavedAt = (stored: number | null): number | null | undefined =>
  stored === null ? undefined : stored || null;

export type CompiledTool =
  | { readonly kind: 'tool'; readonly tool: RegisteredTool }
  | { readonly kind: 'agent'; readonly agentName: string };

/** Where the engine gets agents from. */
export interface AgentSource {
  /**
   * The agent that is current now; `trace` is what the compile belongs to. Throws AcpError `agent-not-found`, or CompileError
   * when it exists and does not compile.
   */
  compile(tenantId: string, name: string, trace?: TraceParent | null): Promise<CompiledAgent>;
  /**
   * The agent as it was in a version, for a run that goes on; throws as `compile` does. An agent of code has one. With
   * `savedAt` another agent that has the name by now is none.
   */
  compileVersion(tenantId: string, name: string, version: number, savedAt?: number | null): Promise<CompiledAgent>;
}

interface CompileFailure {
  /** What the message begins with. */
  readonly lead?: string;
  /** Type of the run's error: why it could not run. */
  readonly type?: 'compilation_failed' | 'provider_not_allowed';
}

/** A definition that exists and does not compile; recorded as a failed run of class CompilationFailed. */
export class CompileError extends Error {
  readonly version: number;
  readonly findings: readonly { readonly path: string; readonly message: string }[];
  readonly type: string;

  constructor(
    agentName: string,
    version: number,
    findings: readonly { readonly path: string; readonly message: string }[],
    { lead = `Agent "${agentName}" does not compile`, type = 'compilation_failed' }: CompileFailure = {},
  ) {
    super(`${lead}: ${findings.map((finding) => finding.message).join(' ')}`);
    this.name = 'CompileError';
    this.version = version;
    this.findings = findings;
    this.type = type;
  }
}

/** Why a run could not begin. */
export const compileFailure = (error: CompileError): RunFailure =>
  new RunFailure('CompilationFailed', error.type, error.message, { findings: error.findings });
