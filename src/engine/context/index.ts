/** What a run knows: messages, attachments, memory, what an earlier run has left, and what of it the model is sent. */
export { type AgentMemory, agentModes, firstMode, type MemoryOwner } from './agent-memory.ts';
export {
  attachmentsIn,
  type ChatMessage,
  type ContentPart,
  documentText,
  messageTexts,
  newMessage,
  type ProviderMetadata,
  taskText,
  toPrompt,
} from './chat-message.ts';
export { type Conversation, openConversation, previewCompaction } from './compaction/conversation.ts';
export type { KeptSummary } from './compaction/kept-summary.ts';
export { textTokens } from './compaction/token-estimate.ts';
export { type AskedSettings, type AskedTool, type GivenContext, historyOf, withGiven } from './given-context.ts';
export { publicMessage } from './public-message.ts';
export { type AgentResources, type ReadResource, resourceName, withResources } from './resources.ts';
export {
  type AttachmentContent,
  type AttachmentReference,
  type LoadedAttachments,
  noAttachments,
  type RunAttachments,
} from './run-attachments.ts';
export {
  type AnswerRejection,
  type RecordedCall,
  type RecordedDecisions,
  type RunReplay,
  recordedTools,
} from './tool-replay.ts';
export {
  type ClientResult,
  earlierModelCalls,
  isMade,
  normalizedArguments,
  type OpenCall,
  openCalls,
  type QuestionAnswers,
  storedCall,
  type ToolResultPart,
  type TurnResume,
} from './turn-resume.ts';
