import type { GuardInput, GuardSource, GuardVerdict } from './content-guard.ts';

/** One guard and one of its rules. */
export interface GuardFinding {
  readonly guardName: string;
  readonly ruleName: string;
}

/** What all guards together say of a text. */
export interface Inspected {
  /** As the last guard left it; with a block it must go nowhere. */
  readonly text: string;
  readonly masks: readonly GuardFinding[];
  readonly block: GuardFinding | null;
}

/** Told when a guard is asked; what it returns, when the guard has decided. */
export type GuardWatch = (guardName: string) => (decision: GuardVerdict['decision']) => void;

/** A block as the audit trail keeps it. */
export interface BlockNote {
  readonly tenantId: string;
  readonly actor: string | null;
  /** What the text was a part of: a request outside of a run has its own id. */
  readonly entity: 'run' | 'request';
  readonly id: string;
  readonly source: GuardSource;
  readonly finding: GuardFinding;
}

/** The guards of the host. There is no such object while none is registered. */
export interface ContentGuards {
  /** Whether what enters a run is inspected. */
  readonly input: boolean;
  /** Whether what a model writes is inspected. */
  readonly output: boolean;
  /** Whether streamed text is held back until its message was inspected. */
  readonly buffersStreams: boolean;
  /** Asks the guards one after another. Rejects only with the reason of the signal. */
  inspect(input: GuardInput, signal: AbortSignal | null, watch: GuardWatch | null): Promise<Inspected>;
  /** Never rejects. */
  noteBlock(note: BlockNote): Promise<void>;
}
