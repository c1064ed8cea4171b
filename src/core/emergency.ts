/** What an operator has stopped; asked before anything of an agent begins. */
export interface StopSwitch {
  /** Why nothing of this agent may begin; null: it may. In memory, so that it can be asked for each run. */
  reason(tenantId: string, agentName: string): string | null;
  /** Null: `reason` can be asked now. Else once it has resolved; it rejects while the store cannot say what is stopped. */
  current(): Promise<void> | null;
}
