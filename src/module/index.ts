export type {
  ApprovalCall,
  ApprovalPolicy,
  ApprovalPolicyAnswer,
  ApprovalPresenter,
  ToolApprovalPresentation,
} from '../engine/control/approval-gate.ts';
export type { HeardEvent, ListenedRun, RunEventListener } from '../engine/record/run-listeners.ts';
export type {
  ToolAuthorizer,
  ToolCallUsage,
  ToolContext,
  ToolDefinition,
  ToolDescriptor,
  ToolEffect,
} from '../engine/tools/tool.ts';
export { ToolError } from '../engine/tools/tool.ts';
export type {
  AnswerContext,
  LoopCriterionEvaluator,
  LoopTurn,
  StructuredResponseValidator,
} from '../engine/turn/answer-checks.ts';
export type { DataSubjectResolver, SubjectIdentity } from '../features/data-subjects/index.ts';
export type { AskAgent, Judge, JudgedRun, JudgeVerdict } from '../features/judges/index.ts';
export type {
  AttributionAnswer,
  AttributionRequest,
  AttributionResolver,
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
