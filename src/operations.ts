import { a2aOperations } from './features/a2a/a2a.operations.ts';
import { agentOperations } from './features/agents/agents.operations.ts';
import { approvalOperations, approvalRuleOperations } from './features/approvals/approvals.operations.ts';
import { attachmentOperations } from './features/attachments/attachments.operations.ts';
import { auditOperations } from './features/audit/audit.operations.ts';
import { dataSubjectOperations } from './features/data-subjects/data-subjects.operations.ts';
import { emergencyOperations } from './features/emergency/emergency.operations.ts';
import { traceOperations } from './features/external-runs/traces.operations.ts';
import { jobOperations } from './features/jobs/jobs.operations.ts';
import { judgeOperations } from './features/judges/judges.operations.ts';
import { mcpEndpointOperations } from './features/mcp-endpoint/mcp-endpoint.operations.ts';
import { mcpServerOperations } from './features/mcp-servers/mcp-servers.operations.ts';
import { modelOperations } from './features/models/models.operations.ts';
import {
  chatCompletionOperations,
  embeddingOperations,
  openAiModelOperations,
} from './features/openai/openai.operations.ts';
import { conversationOperations, responseOperations } from './features/openai/responses.operations.ts';
import { diagnosticsOperations } from './features/platform/diagnostics.operations.ts';
import { metaOperations } from './features/platform/meta.operations.ts';
import { policyTestOperations } from './features/policy-tests/policy-tests.operations.ts';
import {
  egressPolicyOperations,
  providerBindingOperations,
} from './features/provider-access/provider-access.operations.ts';
import { quotaOperations } from './features/quotas/quotas.operations.ts';
import { remoteAgentOperations } from './features/remote-agents/remote-agents.operations.ts';
import { replayOperations } from './features/replays/replays.operations.ts';
import { retentionOperations } from './features/retention/retention.operations.ts';
import { runOperations } from './features/runs/runs.operations.ts';
import { scheduleOperations } from './features/schedules/schedules.operations.ts';
import { scoreOperations } from './features/scores/scores.operations.ts';
import { keyOperations } from './features/security/keys.operations.ts';
import { sessionOperations } from './features/sessions/sessions.operations.ts';
import { grantOperations } from './features/skills/grants.operations.ts';
import { skillOperations } from './features/skills/skills.operations.ts';
import { statisticOperations } from './features/statistics/statistics.operations.ts';
import { tenantOperations } from './features/tenants/tenants.operations.ts';
import { toolOperations } from './features/tools/tools.operations.ts';
import { triggerOperations } from './features/triggers/triggers.operations.ts';
import { webhookOperations } from './features/webhooks/webhooks.operations.ts';

/** The whole API at a glance: feature → operations. */
export const operations = {
  agents: agentOperations,
  runs: runOperations,
  scores: scoreOperations,
  judges: judgeOperations,
  replays: replayOperations,
  traces: traceOperations,
  sessions: sessionOperations,
  statistics: statisticOperations,
  skills: skillOperations,
  attachments: attachmentOperations,
  grants: grantOperations,
  approvals: approvalOperations,
  approvalRules: approvalRuleOperations,
  jobs: jobOperations,
  schedules: scheduleOperations,
  triggers: triggerOperations,
  a2a: a2aOperations,
  tools: toolOperations,
  quotas: quotaOperations,
  webhooks: webhookOperations,
  mcpServers: mcpServerOperations,
  remoteAgents: remoteAgentOperations,
  policyTests: policyTestOperations,
  models: modelOperations,
  keys: keyOperations,
  tenants: tenantOperations,
  providerBindings: providerBindingOperations,
  egressPolicies: egressPolicyOperations,
  mcpEndpoint: mcpEndpointOperations,
  audit: auditOperations,
  emergency: emergencyOperations,
  retention: retentionOperations,
  dataSubjects: dataSubjectOperations,
  openAiModels: openAiModelOperations,
  chatCompletions: chatCompletionOperations,
  embeddings: embeddingOperations,
  responses: responseOperations,
  conversations: conversationOperations,
  diagnostics: diagnosticsOperations,
  meta: metaOperations,
} as const;
