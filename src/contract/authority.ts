/** Roles, lowest first; each includes the ones before it. */
export const roles = ['Reader', 'Operator', 'Admin'] as const;
export type Role = (typeof roles)[number];

/** The closed set of API key scopes. A scope narrows a role and never widens it. */
export const apiKeyScopes = [
  'RunsRead',
  'RunsWrite',
  'AgentsRead',
  'AgentsAdmin',
  'ExternalInvoke',
  'KnowledgeRead',
  'KnowledgeAdmin',
  'WorkflowsRead',
  'WorkflowsAdmin',
  'EvalsRead',
  'EvalsAdmin',
  'ExperimentsRead',
  'ExperimentsAdmin',
  'PlatformRead',
  'PlatformAdmin',
  'SecurityAdmin',
  'AuditRead',
  'TracesWrite',
] as const;
export type ApiKeyScope = (typeof apiKeyScopes)[number];

export const roleAtLeast = (role: Role, needed: Role): boolean => roles.indexOf(role) >= roles.indexOf(needed);
