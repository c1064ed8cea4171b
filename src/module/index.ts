export type {
  ToolAuthorizer,
  ToolCallUsage,
  ToolContext,
  ToolDefinition,
  ToolDescriptor,
  ToolEffect,
} from '../engine/tools/tool.ts';
export { ToolError } from '../engine/tools/tool.ts';
export type { HostModule, HostModuleExport } from '../features/tools/index.ts';
export { defineModule } from './define-module.ts';
