import type { Migration } from '../src/db/migrate.ts';
import { initial } from './0001-initial.ts';
import { runSteps } from './0002-run-steps.ts';
import { responseCache } from './0003-response-cache.ts';
import { audit } from './0004-audit.ts';
import { skills } from './0005-skills.ts';
import { skillScriptGrants } from './0006-skill-script-grants.ts';
import { sessions } from './0007-sessions.ts';
import { agentMemory } from './0008-agent-memory.ts';
import { attachments } from './0009-attachments.ts';
import { approvals } from './0010-approvals.ts';
import { runReading } from './0011-run-reading.ts';
import { replays } from './0012-replays.ts';
import { jobCancel } from './0013-job-cancel.ts';
import { sessionSummaries } from './0014-session-summaries.ts';
import { quotas } from './0015-quotas.ts';
import { tenants } from './0017-tenants.ts';
import { retention } from './0018-retention.ts';
import { runTraces } from './0019-run-traces.ts';
import { emergency } from './0020-emergency.ts';
import { providerAccess } from './0021-provider-access.ts';
import { serviceLeases } from './0022-service-leases.ts';
import { uncalledTools } from './0023-uncalled-tools.ts';
import { providerReasons } from './0024-provider-reasons.ts';
import { continuedRuns } from './0025-continued-runs.ts';
import { quotaHolds } from './0026-quota-holds.ts';
import { spanCounts } from './0027-span-counts.ts';
import { attachmentContents } from './0028-attachment-contents.ts';
import { sharedQuotaHolds } from './0029-shared-quota-holds.ts';
import { sharedTurns } from './0030-shared-turns.ts';
import { runCancels } from './0031-run-cancels.ts';
import { partitions } from './0032-partitions.ts';
import { serviceLeaseTerms } from './0033-service-lease-terms.ts';
import { modelHealth } from './0034-model-health.ts';
import { arrivingWork } from './0035-arriving-work.ts';
import { flowWindows } from './0037-flow-windows.ts';
import { flowKeys } from './0039-flow-keys.ts';
import { triggerFlow } from './0041-trigger-flow.ts';
import { jobLines } from './0042-job-lines.ts';
import { flowPlaces } from './0043-flow-places.ts';
import { ruleLabels } from './0048-rule-labels.ts';
import { openAi } from './0050-openai.ts';
import { mcpServers } from './0055-mcp-servers.ts';
import { doors } from './0060-doors.ts';
import { a2aMessages } from './0062-a2a-messages.ts';
import { mcpGrants } from './0072-mcp-grants.ts';
import { remoteAgents } from './0082-remote-agents.ts';
import { externalSpans } from './0084-external-spans.ts';
import { askedRequests } from './0086-asked-requests.ts';
import { agentsOfRuns } from './0088-agents-of-runs.ts';
import { spansSetAside } from './0091-spans-set-aside.ts';
import { deliveriesByStatus } from './0092-deliveries-by-status.ts';
import { spansDropped } from './0094-spans-dropped.ts';
import { inBandApprovals } from './0095-in-band-approvals.ts';
import { modelShares } from './0097-model-shares.ts';
import { spanCountsOfNewStore } from './dialect-parts.ts';

/** Every migration in order, with the checksum of its file. A static list, because a bundle cannot scan a folder. */
export const migrations: readonly Migration[] = [
  { ...initial, checksum: 'de2f9d849ff5220f' },
  { ...runSteps, checksum: '794f7312e9aceb5c' },
  { ...responseCache, checksum: '4bde923152c548e0' },
  { ...audit, checksum: '66b75e36feab383e' },
  { ...skills, checksum: 'afe8a34b2a8d1776' },
  { ...skillScriptGrants, checksum: '7ab9b5fa3907e42f' },
  { ...sessions, checksum: '0bf409b924648083' },
  { ...agentMemory, checksum: 'e1953ced835b870b' },
  { ...attachments, checksum: 'dc5907b9ed3eb4bb' },
  { ...approvals, checksum: '09427ac63b1f61cc' },
  { ...runReading, checksum: '540bc83f6f2d0e1c' },
  { ...replays, checksum: 'cda8598f9e6d6e51' },
  { ...jobCancel, checksum: '4d66612a5f393100' },
  { ...sessionSummaries, checksum: 'f24302a1b66f1b33' },
  { ...quotas, checksum: 'a348885c11e92667' },
  { ...tenants, checksum: '0bc0f7a6f0b414ea' },
  { ...retention, checksum: '5cc6540fd20f219e' },
  { ...runTraces, checksum: '9ffb6752a21caa2e' },
  { ...emergency, checksum: 'ef533a1d7e4513b5' },
  { ...providerAccess, checksum: '68bc42c579888478' },
  { ...serviceLeases, checksum: '36d9099189387d07' },
  { ...uncalledTools, checksum: 'a8db472e1977e0e3' },
  { ...providerReasons, checksum: '75cc4dea767cc6dc' },
  { ...continuedRuns, checksum: '4fe7c74f3fa02520' },
  { ...quotaHolds, checksum: '7bcd03f01d5e7ca7' },
  { ...spanCounts, withoutJsonText: spanCountsOfNewStore, checksum: 'ce3e678d2848cf78' },
  { ...attachmentContents, checksum: '03b19bdcd580a66a' },
  { ...sharedQuotaHolds, checksum: 'c9575ed7b24b7c15' },
  { ...sharedTurns, checksum: '8661b28ddd4e0fed' },
  { ...runCancels, checksum: 'f76c45816540e87b' },
  { ...partitions, checksum: '65ed0d2569f7b53a' },
  { ...serviceLeaseTerms, checksum: 'a388529028f66af6' },
  { ...modelHealth, checksum: '812c02671fef0d94' },
  { ...arrivingWork, checksum: '3eced4f9e4bb8541' },
  { ...flowWindows, checksum: '71caf76c7cd5ae2e' },
  { ...flowKeys, checksum: '70d3f5ce8a6ce67b' },
  { ...triggerFlow, checksum: 'c77530c5db380cf1' },
  { ...jobLines, checksum: '9b0e057f4bc4d09c' },
  { ...flowPlaces, checksum: '38ae45254aa79050' },
  { ...ruleLabels, checksum: '3e629c9d3cefe245' },
  { ...openAi, checksum: '008675cfefb88caf' },
  { ...mcpServers, checksum: '0bd1eb829a1f4c2a' },
  { ...doors, checksum: 'a2b6f06ccc7c2831' },
  { ...a2aMessages, checksum: '822302439508222b' },
  { ...mcpGrants, checksum: '85f0f5333bb9cd85' },
  { ...remoteAgents, checksum: '8231439145567187' },
  { ...externalSpans, checksum: '1d38d2324cd36108' },
  { ...askedRequests, checksum: '63a2998010913850' },
  { ...agentsOfRuns, checksum: 'b53b580c236b5db8' },
  { ...spansSetAside, checksum: 'dc8e31bcaa60d979' },
  { ...deliveriesByStatus, checksum: '46d538292cd31ac3' },
  { ...spansDropped, checksum: '43832e9b27991da1' },
  { ...inBandApprovals, checksum: '3e99f6d5770f2443' },
  { ...modelShares, checksum: '2abf765233f131b0' },
];
