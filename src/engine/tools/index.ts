/** What a tool is: its definition, the checks of its calls, and its body. */
export { type ArgumentsChecker, argumentsChecker, parseArguments } from './arguments.ts';
export { withDeadline } from './deadline.ts';
export { isServiceToolName, maxToolTimeoutMs } from './definition.ts';
export { inputSchemaProblems } from './input-schema.ts';
export { type ReadSchema, readForeignSchema } from './older-dialects.ts';
export { prepareCall } from './prepared-call.ts';
export {
  type ContinuedCall,
  type QuestionAnswer,
  type ToolQuestion,
  ToolQuestions,
} from './questions.ts';
export {
  type BuiltInCall,
  createToolRegistry,
  type RegisteredTool,
  registeredTool,
  type ToolRegistration,
  type ToolRegistry,
} from './registry.ts';
export {
  endedTaskStates,
  type LostRemoteTasks,
  type RemoteAgent,
  type RemoteRequest,
  type RemoteTask,
  type RemoteTaskEnd,
  remoteFailureType,
} from './remote-agent.ts';
export { ResultFiles } from './result-files.ts';
export type { OpensSpan } from './tool.ts';
export {
  type AttachmentDescriptor,
  cutText,
  errorClassOf,
  maxToolErrorLength,
  type ToolAuthorizer,
  type ToolCallUsage,
  type ToolContext,
  type ToolDefinition,
  type ToolDescriptor,
  type ToolEffect,
  ToolError,
  type ToolRun,
  ToolStop,
  toolEffects,
} from './tool.ts';
export { isToolFailure, type ToolCallDeps, type ToolCallRequest, type ToolOutcome } from './tool-call.ts';
export { callTool, callToolName, findTool, findToolName } from './tool-discovery.ts';
export { canonicalText, outputLimit, truncateOutput } from './tool-output.ts';
export { type FieldPath, type FieldProblem, formatPath, type ToolPlace, type ToolProblem } from './tool-problem.ts';
