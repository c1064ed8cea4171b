import type { FrameSource } from '../../contract/operation.ts';
import type { StopSwitch } from '../../core/emergency.ts';
import type { LazyUnit } from '../../db/batched-writes.ts';
import type { Statement } from '../../db/statement.ts';
import type { ActiveRun, RunOutcome, RunPlan } from '../active-run.ts';
import type { AgentMemory, AgentResources, RunAttachments } from '../context/index.ts';
import type { ContentGuards, Pause, QuotaPorts, TreeLimits } from '../control/index.ts';
import type { LateClosing, RecordPorts, RunListeners, UnitFailure } from '../record/index.ts';
import type { RunFailure } from '../run-failure.ts';
import type { ChildPorts, TurnPorts } from '../turn/index.ts';

/** What becomes of a run that its process cannot finish. */
export interface UnfinishedRuns {
  /** Writes that put the run back in line for another attempt; null when this was its last. */
  requeue(plan: RunPlan, failure: RunFailure): readonly Statement[] | null;
  /** Writes that put the run back in line for an attempt that counts in place of this one; null: its job is not its own. */
  postpone(plan: RunPlan, failure: RunFailure): readonly Statement[] | null;
  /** Writes that have the turn of a closed run continued by another run; none when it is not. */
  continuation(plan: RunPlan, failure: RunFailure): readonly Statement[];
  /** The principal as it is stored with a turn. */
  packPrincipal(plan: RunPlan): unknown;
}

/** What is kept of a pause beside the session: written in the unit that closes the run. */
export interface PauseJournal {
  opened(run: ActiveRun, pause: Pause, now: number): readonly Statement[];
}

/** Tells receivers outside the service how root runs end, in the unit of that end; of other runs it tells nothing. */
export interface RunEnds {
  /** Null: it is known who listens. Else it resolves once that was read, or could not be; it never rejects. */
  current(): Promise<void> | null;
  /** Writes for the transaction; none without a subscription. `at`: epoch milliseconds. `isIncomplete`: of the record. */
  closing(
    run: ActiveRun,
    end: Pick<RunOutcome, 'status' | 'error'>,
    at: number,
    isIncomplete: boolean,
  ): readonly Statement[];
  /** After the commit of that unit. */
  closed(run: ActiveRun, status: RunOutcome['status']): void;
}

/** What the first writes of a run need. */
export interface OpeningPorts extends RecordPorts {
  readonly unfinished: UnfinishedRuns;
  readonly attachments: RunAttachments;
  readonly resources: AgentResources;
  /** Null: no guard is registered, so nothing is inspected or held back. */
  readonly guards: ContentGuards | null;
  readonly settings: RecordPorts['settings'] & {
    /** Which runs store their turn step by step: those that may be continued, those that may be retried. */
    readonly steps: { readonly continuation: boolean; readonly retries: boolean };
  };
}

/** What the last writes of a run need. */
export interface ClosingPorts extends RecordPorts, QuotaPorts {
  readonly unfinished: UnfinishedRuns;
  readonly pauses: PauseJournal;
  /** Null: nobody outside is told. */
  readonly ends: RunEnds | null;
  readonly memory: AgentMemory;
}

/** Runs of this process, as others know them that share its store. */
export interface SharedRuns {
  /** After each commit of a run. */
  announce(runId: string): void;
  /** The log of a run from there on, once another process has closed the run or executes it. */
  log(tenantId: string, runId: string, from: number): FrameSource;
}

/** Everything the engine needs of the outside, and what it counts with. */
export interface EnginePorts extends TurnPorts, OpeningPorts, ClosingPorts, ChildPorts {
  readonly settings: EngineSettings;
  readonly stops: StopSwitch;
  /** Null: no module listens to events. */
  readonly listeners: RunListeners | null;
  /** Null: the store has one owner. */
  readonly shared: SharedRuns | null;
  enqueue(unit: LazyUnit): void;
  /** Why the store did not take a unit. */
  failureOf(error: unknown): UnitFailure;
  /** Writes the end of a run once the store takes it again. */
  closeLater(run: { readonly id: string; readonly tenantId: string }, late: LateClosing): void;
}

export type EngineSettings = TurnPorts['settings'] &
  OpeningPorts['settings'] &
  ChildPorts['settings'] & { readonly tree: TreeLimits };
