export { type ReceivedWebhook, verifyWebhook, type WebhookVerdict } from '../core/received-webhook.ts';
export type {
  ApprovalCall,
  ApprovalPolicy,
  ApprovalPolicyAnswer,
  ApprovalPresenter,
  ToolApprovalPresentation,
} from '../engine/control/index.ts';
export type { HeardEvent, ListenedRun, RunEventListener } from '../engine/record/index.ts';
export {
  type ToolAuthorizer,
  type ToolCallUsage,
  type ToolContext,
  type ToolDefinition,
  type ToolDescriptor,
  type ToolEffect,
  ToolError,
} from '../engine/tools/index.ts';
export type {
  AnswerContext,
  LoopCriterionEvaluator,
  LoopTurn,
  StructuredResponseValidator,
} from '../engine/turn/index.ts';
export type { DataSubjectResolver, SubjectIdentity } from '../features/data-subjects/index.ts';
export type { ModuleJob, ModuleJobHandler, ModuleJobItem, ModuleJobResult } from '../features/jobs/index.ts';
export type { AskAgent, Judge, JudgedRun, JudgeVerdict } from '../features/judges/index.ts';
export type { McpTokenKey, McpTokenStore } from '../features/mcp-servers/index.ts';
export type {
  AttributionAnswer,
  AttributionRequest,
  AttributionResolver,
  DeploymentTokenSource,
  HostModule,
  HostModuleExport,
  HostSkill,
  ModuleAuditEntry,
  ModuleHost,
  RolePolicy,
  RolePolicyRequest,
  RunAuthorizationHandler,
  RunAuthorizationRequest,
} from '../features/modules/index.ts';
export type { ArchiveBatch, ArchiveSink } from '../features/retention/index.ts';
export { defineModule } from './define-module.ts';
