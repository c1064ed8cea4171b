import type { AgentRunRequest } from '../../../contract/run-request.ts';
import type { RunAttribution } from '../../../core/caller/attribution.ts';
import type { RunTarget } from '../../../core/caller/run-authorization.ts';
import type { CallContext } from '../../../core/context.ts';
import type { Statement } from '../../../db/statement.ts';
import type { RunJob, RunPlan } from '../../../engine/active-run.ts';
import type { CompiledAgent } from '../../../engine/compiled-agent.ts';
import type { AskedSettings, GivenContext } from '../../../engine/context/index.ts';
import type { TreeLimits } from '../../../engine/control/index.ts';
import type { FlowSource } from '../../jobs/index.ts';

/** Who a run is for. */
export type RunOwner = Pick<RunPlan, 'userId' | 'labels' | 'ownerId'>;

/** What a run does. */
export type RunWork = Pick<RunPlan, 'agent' | 'parameters'> &
  Partial<
    Pick<
      RunPlan,
      | 'kind'
      | 'message'
      | 'documents'
      | 'attachments'
      | 'culture'
      | 'resume'
      | 'resources'
      | 'replay'
      | 'given'
      | 'asked'
      | 'asksNobody'
    >
  >;

/** `answers`: a request that brings decisions or tool results, so that a turn goes on. */
export type AskedKind = 'request' | 'answers' | 'queued' | 'judge' | 'replay';

/** The item of a job that a run is made for. */
export interface ItemOfJob {
  /** As the run has it: whoever has lost the item writes nothing of the run. */
  jobOf(runId: string): RunJob;
  /** Stores whose run it will be before it begins; rejects when the job is another worker's. */
  reserve(runId: string): Promise<void>;
}

/** A queued run that no caller asks for: something has arrived that starts it. */
export interface ArrivingWork {
  /** Who it is for, decided by what has arrived and not by the host. */
  readonly attribution: RunAttribution;
  /** Written together with the run and its job, or not at all. */
  readonly stored: (runId: string) => readonly Statement[];
  /** How it is let in, beside the flow of its agent; null: at once. */
  readonly flow: FlowSource | null;
}

/** What another system asks for, through the door of its caller. */
export interface ExposedWork {
  /** Limits of the tree. */
  readonly limits: TreeLimits;
  /** Beside those that the run has anyway. */
  readonly labels: Readonly<Record<string, string>>;
  /** Stores whose run it will be before it begins; what it throws leaves it unmade. */
  reserve?(runId: string): Promise<void>;
}

/** What a request of another API asks for, once its run has an id: a session may be named by it. */
export interface OutsideParts extends Pick<RunPlan, 'given' | 'opening'>, Partial<Pick<RunPlan, 'asked'>> {
  readonly body: AgentRunRequest;
}

/** A request of another API, which says more than a body can. Nobody can be asked for an approval of its run. */
export interface OutsideCall {
  /** The agent as this run has it. */
  adjusted(agent: CompiledAgent): CompiledAgent;
  /** Called once, when the run has its place among those that quotas allow. */
  parts(runId: string): Promise<OutsideParts>;
}

/** What a caller asks for. */
export interface LaunchRequest {
  readonly kind: AskedKind;
  readonly context: CallContext;
  readonly agentName: string;
  /** Empty where the run is not described by one. */
  readonly body: AgentRunRequest;
  readonly isStreaming: boolean;
  /** What the host is told of the run beside its agent. */
  readonly target: Pick<RunTarget, 'sessionId' | 'userId' | 'runId'>;
  /** What the run does, once it has its place; null: what the body says. */
  readonly work: ((runId: string) => Promise<RunWork>) | null;
  readonly item?: ItemOfJob;
  readonly arriving?: ArrivingWork;
  readonly exposed?: ExposedWork;
  readonly outside?: OutsideCall;
  /** Of a request of another API, once its run has an id. */
  readonly given?: GivenContext | null;
  readonly asked?: AskedSettings | null;
  readonly opening?: RunPlan['opening'];
}

/** A request whose caller may start the run, and whose the run will be. */
export interface Entrance {
  readonly request: LaunchRequest;
  readonly ownerId: string | null;
}
