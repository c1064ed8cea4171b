import type { Statement } from '../../db/statement.ts';

/** Todo entries, files and mode belong to the session, or to the run when there is none. */
export interface MemoryOwner {
  readonly tenantId: string;
  readonly sessionId: string | null;
  readonly runId: string;
}

export const agentModes = ['plan', 'act'] as const;
export type AgentMode = (typeof agentModes)[number];
/** An agent that is asked for something does it; planning is what it chooses. */
export const firstMode: AgentMode = 'act';

/** What a run has to know of its agent's memory; the tools are made by the feature. */
export interface AgentMemory {
  /** Texts of the entries that are not done, in order. */
  openTodos(owner: MemoryOwner): Promise<readonly string[]>;
  mode(owner: MemoryOwner): Promise<AgentMode>;
  /** Forgets what belonged to a run without a session, in the unit that closes the run. */
  runClosed(tenantId: string, runId: string): readonly Statement[];
}
