import type { AttachmentDescriptor, OpensSpan, ToolContext } from './tool.ts';

/** A task of another system, as a run keeps it. */
export interface RemoteTask {
  /** Its `id`. */
  readonly agent: string;
  /** Null: the other side has told of none, as before its first answer. */
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** In the words of the protocol, without their prefix. */
  readonly state: string | null;
}

/** One message to an agent that another system runs. */
export interface RemoteRequest extends Pick<ToolContext, 'tenantId' | 'runId' | 'signal'> {
  readonly requestId: string;
  readonly message: string;
  /** Equal for every execution of the same call. */
  readonly idempotencyKey: string;
  readonly openSpan?: OpensSpan;
  /** Each time something new is known of what became of the message. */
  told(task: RemoteTask): void;
  saveAttachment(bytes: Uint8Array, fileName: string): Promise<AttachmentDescriptor>;
}

/** An agent that another system runs. */
export interface RemoteAgent {
  /** What agents here call it by. */
  readonly name: string;
  /** Which one of that name it is, for whoever finds it by its task. */
  readonly id: string;
  /** Longest wait for an answer. */
  readonly timeoutMs: number;
  /** Its answer. Throws ToolStop with a text in which nothing is that the other side has said. */
  answer(request: RemoteRequest): Promise<string>;
}

/**
 * What came of the attempt to end a task. `over`: it is, in this state; null where there is none of its id. `open`: it
 * may still go on, and `again` says whether another attempt may help.
 */
export type RemoteTaskEnd =
  | { readonly kind: 'over'; readonly state: string | null }
  | { readonly kind: 'open'; readonly again: boolean };

/** Ends the tasks of runs whose process is gone. */
export interface LostRemoteTasks {
  /** False: the call may be made again, as the same message, or nobody knows the agent any more. */
  ends(tenantId: string, agentId: string): Promise<boolean>;
  /** Tells the agent that nobody waits, unless the task is over. */
  end(run: { readonly tenantId: string; readonly runId: string }, task: RemoteTask): Promise<RemoteTaskEnd>;
}

/** Nothing comes of a task in one of these states any more, whoever waits. */
export const endedTaskStates: ReadonlySet<string> = new Set(['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED']);

/** `error.type` of a run whose work another system has not done. */
export const remoteFailureType = 'remote_agent_failed';
