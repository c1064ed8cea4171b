/** What host code may decide about texts: a plain contract, called by the engine for every text of a run. */

export type GuardSource =
  | 'UserMessage'
  | 'ToolResult'
  /** What a remote server says of a tool, and what the tool answers. */
  | 'RemoteTool'
  | 'Document'
  | 'ModelOutput'
  | 'SkillResource'
  | 'Unknown';

export interface GuardInput {
  /** The whole text. */
  readonly text: string;
  /** `Unknown`: a text that a module adds by itself, such as the feedback of a loop criterion. */
  readonly source: GuardSource;
  readonly tenantId: string;
  readonly agentName: string;
  readonly runId: string;
  readonly sessionId: string | null;
  readonly userId: string | null;
  /** Of a tool result, of what a server says of a tool, and of the arguments of a call in ModelOutput. */
  readonly toolName: string | null;
  /** The server of a RemoteTool. */
  readonly toolSource: string | null;
  /** Of a Document. */
  readonly mediaType: string | null;
}

export type GuardVerdict =
  | { readonly decision: 'Allow' }
  /** Rule names of 1 to 64 characters, at least one. */
  | { readonly decision: 'Mask'; readonly text: string; readonly rules: readonly string[] }
  | { readonly decision: 'Block'; readonly rule: string };

export interface ContentGuard {
  /** 1 to 64 of `A-Z a-z 0-9 . _ -`, unique in any case. */
  readonly name: string;
  /** Throwing, another answer, or taking longer than `ContentGuard:GuardTimeout` blocks. */
  inspect(input: GuardInput, signal: AbortSignal): Promise<GuardVerdict> | GuardVerdict;
}
