import type { Principal } from '../core/context.ts';
import type { Statement } from '../db/statement.ts';
import type { ModelUsage } from '../providers/models/model-provider.ts';
import { unreportedUsage } from '../providers/models/model-usage.ts';
import type { CompiledAgent, CompiledTarget } from './compiled-agent.ts';
import {
  type AskedSettings,
  type AttachmentReference,
  type ChatMessage,
  earlierModelCalls,
  type GivenContext,
  historyOf,
  type KeptSummary,
  type LoadedAttachments,
  noAttachments,
  type ReadResource,
  type RunReplay,
  type TurnResume,
} from './context/index.ts';
import { type Pause, type TreeBudget, type TreeLimits, type UnrecordedCount, WaitClock } from './control/index.ts';
import { ModelShares } from './model-shares.ts';
import { addCosts, type CostMicros } from './pricing.ts';
import type {
  ExecutedKind,
  ModelCallRecord,
  RunLog,
  RunTrace,
  SessionTurn,
  TraceOrigin,
  TurnSteps,
} from './record/index.ts';
import type { RunFailure, StoredRunError } from './run-failure.ts';
import type { RemoteAgent, RemoteRequest } from './tools/index.ts';
import { addUsage } from './usage.ts';

/** Why a run that was accepted does not start, as its last event names it. */
export type DropCause = 'RateLimited' | 'Skipped' | 'Replaced';
export type CancelCause = 'Requested' | 'Disconnected' | 'Interrupted' | 'RolledBack' | 'ParentCanceled' | 'Replaced';

/** The job that a run executes an attempt of. */
export interface RunJob {
  readonly id: string;
  readonly lane: string;
  /** Who holds the job's lease. */
  readonly leaseOwner: string;
  /** This attempt, from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Fails the unit that it is part of once another worker has the job. */
  readonly held: Statement;
  /** The same for an end that the store takes late: the worker may have ended the job by itself meanwhile. */
  readonly heldLate: Statement;
  /** Says that the job is at work, with the start of the run; null: its worker has said so. */
  readonly begun: Statement | null;
  /** Ends the job with a run that has done its part; null: its worker does. */
  readonly completed: (() => Statement) | null;
  /** Set for a run that continues a decided one: the session's next run can answer its client-side calls. */
  readonly continuesApproval?: true;
}

/** Everything about a run that is fixed before it starts; the launch makes it. */
export interface RunPlan {
  readonly id: string;
  readonly tenantId: string;
  readonly requestId: string;
  readonly kind: ExecutedKind;
  readonly agent: CompiledAgent;
  readonly message: string | null;
  readonly documents: readonly { readonly name: string; readonly content: string }[];
  readonly attachments: readonly AttachmentReference[];
  readonly culture: string | null;
  readonly parameters: Readonly<Record<string, string>>;
  readonly sessionId: string | null;
  readonly session: SessionTurn | null;
  /** Whether the caller's answer is the stream of the run's events. */
  readonly isStreaming: boolean;
  readonly principal: Principal;
  readonly userId: string | null;
  /** Whose run it is while sessions have owners. */
  readonly ownerId: string | null;
  readonly labels: Readonly<Record<string, string>> | null;
  /** Null: the run is no job's. */
  readonly job: RunJob | null;
  readonly createdAt: number;
  /** 0 for a new run; after `run.queued` the row and its log exist already. */
  readonly nextSequence: number;
  /** Where the turn goes on; null: it begins with the message. With it a message is the user's next one. */
  readonly resume: TurnResume | null;
  /** What it has read of the resources that its agent names; null: that is still to be done. */
  readonly resources: readonly ReadResource[] | null;
  /** Null: the run has what its message, its session and its agent say. */
  readonly given: GivenContext | null;
  /** What its caller decided of `agent`, for a replay; null: nothing. */
  readonly asked: AskedSettings | null;
  /**
   * True: nobody can be asked for an approval. Without a session a call for the client's program ends such a run, whose
   * caller has the conversation and goes on with another one.
   */
  readonly asksNobody: boolean;
  /** Written with the row of the run, or not at all; told what is left of the plan once guards have seen it. */
  readonly opening: readonly ((plan: RunPlan) => Statement)[];
  /** The closed run whose turn this one goes on with. */
  readonly continuedFromRunId: string | null;
  /** Where the tree counts against quotas while runs are not recorded; null: it has a row, or is not counted. */
  readonly unrecordedCount: UnrecordedCount | null;
  /** True: it was admitted although the counters of quotas could not be read. */
  readonly isUnchecked: boolean;
  /** Null: no recorded run is repeated. */
  readonly replay: RunReplay | null;
  readonly parent: ActiveRun | null;
  /** Call of the parent that the run answers; null without a parent. */
  readonly parentCallId: string | null;
  /** What another system does in place of a model; null: the agent's model does it. */
  readonly remote: RemoteWork | null;
  /** Limits of the tree below it; null: those of every tree. */
  readonly limits: TreeLimits | null;
  /** Where its trace comes from; null: a new one begins. */
  readonly trace: TraceOrigin | null;
  /** Set when the run has to wait for its session: it is Queued until its turn comes. */
  readonly waiting: { readonly position: number; turn(signal: AbortSignal): Promise<BegunTurn> } | null;
}

/** What a run that another system executes is made of, with its message. */
export interface RemoteWork extends Pick<RemoteRequest, 'idempotencyKey' | 'saveAttachment'> {
  readonly agent: RemoteAgent;
}

/** How a call of another agent becomes a run: the launch plans it. */
export interface ChildPlans {
  /** Throws ToolError with a text for the caller's model, also where the limits of the tree admit no further run. */
  plan(parent: ActiveRun, agentName: string, message: string, toolCallId: string): Promise<RunPlan>;
  /** The same for an agent that another system runs. */
  planRemote(parent: ActiveRun, work: RemoteWork, message: string, toolCallId: string): RunPlan;
}

/** What a run that waited works with: the session, and the agent as it is when its turn comes. */
export type BegunTurn = Pick<RunPlan, 'agent' | 'parameters' | 'resume'> & { readonly session: SessionTurn };

export type StopReason =
  | { readonly kind: 'cancel'; readonly cause: CancelCause; readonly by: string | null }
  | { readonly kind: 'fail'; readonly failure: RunFailure }
  /** Another worker has the run's job: nothing more is written of this attempt. */
  | { readonly kind: 'lost' };

export type FinishReason = 'Stop' | 'Length' | 'ToolCalls' | 'ContentFilter' | 'Iterations';

/** How a run ended, as its caller gets it. */
export interface RunOutcome {
  /** Queued: the attempt failed and another one follows. */
  readonly status: 'Completed' | 'Failed' | 'Canceled' | 'Queued' | 'AwaitingApproval' | 'AwaitingInput';
  /** What a paused run waits for; null otherwise. */
  readonly pause: Pause | null;
  readonly output: string | null;
  readonly finishReason: FinishReason | null;
  readonly usage: ModelUsage | null;
  readonly cost: CostMicros | null;
  readonly error: StoredRunError | null;
  readonly failure: RunFailure | null;
  readonly durationMs: number;
  readonly modelProvider: string;
  readonly modelId: string;
  /** The job was ended in the unit of the run's end. */
  readonly isJobStored?: true;
  /** Another process has closed the run, or has it now: what became of it is in the store. */
  readonly isLost?: true;
  /** Why nothing of a job's run has begun, where it is for the job's handler to say that the job waits. */
  readonly unstarted?: RunFailure;
}

/** A run that executes in this process. */
export class ActiveRun {
  /** Brought up to date when a wait ends, and left with masked texts by guards. */
  plan: RunPlan;
  readonly log: RunLog;
  readonly budget: TreeBudget;
  startedAt: number;
  readonly children = new Set<ActiveRun>();
  /** Of the whole tree. */
  readonly waits: WaitClock;
  /** Null where observability is off. */
  trace: RunTrace | null = null;
  /** Whether text of the run has reached its log. */
  hasText = false;
  /** Messages of this turn: the user's first, then what was produced. */
  readonly messages: ChatMessage[] = [];
  /** What the attachments of the conversation hold, from the start of the run to its end. */
  attachments: LoadedAttachments = noAttachments;
  /** Text of the answer that is being streamed, kept when the run is cut off. */
  partialText = '';
  /** Id of the message that it is of: events have told it. */
  partialMessageId = '';
  /** True while no model call may be answered from the response cache: attachments, live replays, repairs. */
  bypassesCache = false;
  /** The newest message of a model came from the response cache. */
  isFromCache = false;
  usage: ModelUsage = unreportedUsage;
  cost: CostMicros | null = null;
  /** The same by models. */
  readonly shares = new ModelShares();
  target: CompiledTarget;
  session: SessionTurn | null;
  modelCalls = 0;
  /** Something has come of this attempt: a model was asked, or a tool. */
  hasActed = false;
  /** Of the conversation up to here; the session keeps it with the turn. Null: the session's own, if it has one. */
  summary: KeptSummary | null = null;
  /** Null where the input of runs is not recorded, without which no call could be repeated. */
  callRecord: ModelCallRecord | null = null;
  settledTools = 0;
  /** Nothing in the store counts the run for its quotas. */
  uncounted: boolean;
  /** Why a guard ended the run. */
  blocked: RunFailure | null = null;
  /** Null: nobody will go on with this turn, so nothing is stored of it until it ends. */
  readonly steps: TurnSteps | null;
  done: Promise<RunOutcome>;
  finish: (outcome: RunOutcome) => void = () => undefined;
  readonly #controller = new AbortController();
  #stopReason: StopReason | null = null;

  constructor(plan: RunPlan, log: RunLog, budget: TreeBudget, steps: TurnSteps | null, now: number) {
    this.plan = plan;
    this.log = log;
    this.budget = budget;
    this.steps = steps;
    this.startedAt = now;
    this.waits = plan.parent?.waits ?? new WaitClock();
    this.target = plan.agent.model;
    this.uncounted = plan.unrecordedCount?.isWritten === false;
    this.session = plan.session;
    this.bypassesCache = plan.replay?.isLive === true;
    this.modelCalls = earlierModelCalls(plan.resume);
    const earlier = plan.resume?.earlier ?? null;
    if (earlier !== null) {
      this.usage = earlier.usage;
      this.cost = earlier.cost;
      this.settledTools = earlier.settledTools;
      if (earlier.cost !== null) budget.settle(earlier.usage, earlier.cost);
    }
    this.done = new Promise((resolve) => {
      this.finish = resolve;
    });
  }

  /** The end of a wait: the run has its session, and what it was accepted with is brought up to date. */
  begin({ session, ...current }: BegunTurn, now: number): void {
    this.plan = { ...this.plan, ...current };
    this.session = session;
    this.target = current.agent.model;
    this.startedAt = now;
    this.budget.begin();
  }

  get id(): string {
    return this.plan.id;
  }

  /** What went before the messages of this turn. */
  get history(): readonly ChatMessage[] {
    return historyOf(this);
  }

  get depth(): number {
    return this.plan.parent === null ? 0 : this.plan.parent.depth + 1;
  }

  get root(): ActiveRun {
    return this.plan.parent === null ? this : this.plan.parent.root;
  }

  get rootId(): string {
    return this.root.id;
  }

  /** Whether the log has answers in parts as they come: for the caller of a stream, and for who follows a queued run. */
  get tellsParts(): boolean {
    const { isStreaming, job } = this.root.plan;
    return isStreaming || job !== null;
  }

  /** Aborted when the run has to stop; model calls and tools follow it. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get stopReason(): StopReason | null {
    return this.#stopReason;
  }

  /** Asks the run and its descendants to stop; the first reason stands. */
  stop(reason: StopReason): void {
    if (this.#stopReason !== null) return;
    this.#stopReason = reason;
    this.#controller.abort();
    const forChildren: StopReason =
      reason.kind === 'cancel' ? { kind: 'cancel', cause: 'ParentCanceled', by: reason.by } : reason;
    for (const child of this.children) child.stop(forChildren);
  }

  /** Adds what a call of a model used. */
  addUsage({ provider, model }: Pick<CompiledTarget, 'provider' | 'model'>, usage: ModelUsage, cost: CostMicros): void {
    this.shares.add({ provider: provider.name, model, calls: 1, usage, cost });
    this.usage = addUsage(this.usage, usage);
    this.cost = this.cost === null ? cost : addCosts(this.cost, cost);
  }
}

/** The model that a run is of; none where another system does its work. */
export const modelOf = ({
  plan,
  target,
}: Pick<ActiveRun, 'plan' | 'target'>): { readonly modelProvider: string | null; readonly modelId: string | null } =>
  plan.remote === null
    ? { modelProvider: target.provider.name, modelId: target.model }
    : { modelProvider: null, modelId: null };
