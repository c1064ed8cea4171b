/** What a judge gets of a run, and nothing else: no arguments or results of tools, no history, no caller. */
export interface JudgedRun {
  /** What the run was asked, as it was recorded. */
  readonly input: string;
  /** Never blank. */
  readonly output: string;
  /** Names of the tools that the run called, each once, in the order of their first call. */
  readonly toolNames: readonly string[];
  readonly tenantId: string;
}

export interface JudgeVerdict {
  /** 0 to 100; null: no verdict, and nothing is stored. */
  readonly score: number | null;
  /** Why; cut at 4000 characters. */
  readonly reason?: string | null;
  /** Further scores from 0 to 100 under names of 1 to 64 of `A-Z a-z 0-9 . _ -`, at most 32. */
  readonly metrics?: Readonly<Record<string, number>>;
}

/**
 * Runs an agent of the tenant to its end and gives its answer: how a judge asks a model. The run is one of kind Eval, for
 * whoever had the judge asked; it has no session. Throws `JudgeCallError`, whose `code` is that of a problem.
 */
export type AskAgent = (agentName: string, message: string) => Promise<string>;

/** Code of a host that scores finished runs. */
export interface Judge {
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`, unique in any case. */
  readonly name: string;
  /** 1 to 64 characters, stored with each score: which edition of the judge gave it. */
  readonly version?: string;
  /** Throwing, another answer, or taking longer than `OnlineEvaluation:JudgeTimeout` is a failure of this judge alone. */
  judge(run: JudgedRun, signal: AbortSignal, ask: AskAgent): Promise<JudgeVerdict> | JudgeVerdict;
}
