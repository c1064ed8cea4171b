import type { Frame } from '../../contract/operation.ts';
import type { ClientToolCall, PendingToolApproval } from '../../contract/tool-approval.ts';
import type { AgentRunResponse } from '../../features/runs/runs.schema.ts';
import { frameData } from '../../text/event-line.ts';

/** A run that closed with calls that wait for a person or for the caller's own program. */
export interface RunPause {
  readonly runId: string;
  readonly sessionId: string;
  readonly approvals: readonly (PendingToolApproval & { readonly truncated?: boolean })[];
  readonly clientToolCalls: readonly ClientToolCall[];
}

/** How a run ended that a command has followed. */
export interface FollowedRun {
  readonly exitCode: number;
  /** Null unless the run waits. */
  readonly pause: RunPause | null;
}

const listOf = <T>(value: unknown): readonly T[] => (Array.isArray(value) ? (value as T[]) : []);

/** What a terminal event says to wait for; null for every other event. */
export const pauseOfFrame = (frame: Frame): RunPause | null => {
  if (frame.event !== 'run.awaiting-approval' && frame.event !== 'run.awaiting-input') return null;
  const data = frameData(frame);
  return {
    runId: String(data['runId']),
    sessionId: String(data['sessionId']),
    approvals: listOf(data['approvals']),
    clientToolCalls: listOf(data['clientToolCalls']),
  };
};

/** The same of a JSON answer. */
export const pauseOfAnswer = ({
  status,
  runId,
  sessionId,
  approvals,
  clientToolCalls,
}: AgentRunResponse): RunPause | null =>
  status === 'Completed' || sessionId === null ? null : { runId, sessionId, approvals, clientToolCalls };
