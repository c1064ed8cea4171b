import type { AttachmentDescriptor, OpensSpan, ToolContext } from './tool.ts';

/** A task of another system, as a run keeps it. */
export interface RemoteTask {
  readonly agent: string;
  /** Null: the other side has told of none, as before its first answer. */
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** In the words of the protocol, without their prefix. */
  readonly state: string | null;
}

/** One message to an agent that another system runs. */
export interface RemoteRequest extends Pick<ToolContext, 'tenantId' | 'runId' | 'traceparent' | 'signal'> {
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
  readonly name: string;
  /** Longest wait for an answer. */
  readonly timeoutMs: number;
  /** Its answer. Throws ToolStop with a text in which nothing is that the other side has said. */
  answer(request: RemoteRequest): Promise<string>;
}

/** Ends the tasks of runs whose process is gone. */
export interface LostRemoteTasks {
  /** False: the call may be made again, as the same message, or nobody knows the agent any more. */
  ends(agentName: string): boolean;
  /** Tells the agent that nobody waits; the state of the task then, null where it does not say. */
  end(run: { readonly tenantId: string; readonly runId: string }, task: RemoteTask): Promise<string | null>;
}

/** `error.type` of a run whose work another system has not done. */
export const remoteFailureType = 'remote_agent_failed';
