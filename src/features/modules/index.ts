export {
  type AttributionAnswer,
  type AttributionRequest,
  type AttributionResolver,
  hostAttribution,
} from './attribution.ts';
export { type DeploymentTokenSource, hostDeploymentCredential } from './deployment-credential.ts';
export { type HostModule, type HostModuleExport, type HostSkill, hostLibrary } from './host-module.ts';
export { type LoadedModules, loadHostModules } from './load-host-modules.ts';
export type { LateAudit, ModuleAuditEntry, ModuleHost } from './module-audit.ts';
export { hostRoleDecision, missingRolePolicies, type RolePolicy, type RolePolicyRequest } from './role-policies.ts';
export {
  hostRunAuthorization,
  type RunAuthorizationHandler,
  type RunAuthorizationRequest,
} from './run-authorization.ts';
