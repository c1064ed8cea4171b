import type { ApiHandlers } from '../core/context.ts';
import { auditFeature } from '../features/audit/index.ts';
import { dataSubjectsFeature } from '../features/data-subjects/index.ts';
import type { emergencyFeature } from '../features/emergency/index.ts';
import { jobsFeature } from '../features/jobs/index.ts';
import { judgesFeature } from '../features/judges/index.ts';
import type { mcpEndpointFeature } from '../features/mcp-endpoint/index.ts';
import type { modelsFeature } from '../features/models/index.ts';
import { openAiFeature } from '../features/openai/index.ts';
import { diagnosticsService, type platformFeature } from '../features/platform/index.ts';
import { policyTestsFeature } from '../features/policy-tests/index.ts';
import { replaysFeature } from '../features/replays/index.ts';
import { scoresFeature } from '../features/scores/index.ts';
import type { securityFeature } from '../features/security/index.ts';
import { statisticsFeature } from '../features/statistics/index.ts';
import { tenantsFeature } from '../features/tenants/index.ts';
import { toolsFeature } from '../features/tools/index.ts';
import type { operations } from '../operations.ts';
import type { Execution } from './execution.ts';
import type { Foundation } from './foundation.ts';

interface HandlerParts {
  readonly foundation: Foundation;
  readonly execution: Execution;
  readonly works: boolean;
  readonly security: Pick<ReturnType<typeof securityFeature>, 'keys'>;
  readonly models: ReturnType<typeof modelsFeature>;
  readonly platform: Pick<ReturnType<typeof platformFeature>, 'meta'>;
  readonly mcpEndpoint: Pick<ReturnType<typeof mcpEndpointFeature>, 'handlers'>;
  readonly emergency: Pick<ReturnType<typeof emergencyFeature>, 'handlers'>;
}

/** What `GET /api/diagnostics` tells of the composed parts. */
const diagnosticsOf = ({ foundation, execution, works, models }: HandlerParts) => {
  const { worker, agents } = execution;
  const { base, opened, providers, modules, hostTools, reporting } = foundation;
  const tools = (path: string): string[] =>
    modules.registrations
      .filter(({ place }) => place([]).file === path)
      .map(({ definition }) => `tool:${definition.name}`);
  const judges = (path: string): string[] =>
    modules.judges.filter(({ file }) => file === path).map(({ value }) => `judge:${value.name}`);
  const jobs = (path: string): string[] =>
    modules.jobs.filter(({ file }) => file === path).map(({ value }) => `job:${value.key}`);
  return diagnosticsService({
    config: base.config,
    instanceId: reporting.instanceId,
    lifecycle: base.lifecycle,
    store: {
      provider: opened.place.provider,
      pending: opened.pending,
      sharing: foundation.sharing,
      probe: () => base.storage.probe(),
    },
    jobs: { enabled: works, active: () => worker.activeJobs },
    modelProviders: () =>
      providers.list().map((provider) => {
        const { status, circuitOpen } = models.health.known(provider);
        return { name: provider.name, status, circuitOpen };
      }),
    toolCount: () => hostTools.registry.list().length,
    countAgents: ({ tenantId }) => agents.count(tenantId),
    modules: base.config.Host.Modules.map((path) => ({
      path,
      registered: [...tools(path), ...judges(path), ...jobs(path)],
    })),
    now: base.now,
  });
};

/** The whole API: whose handlers answer which operations. */
export const apiHandlers = (parts: HandlerParts): ApiHandlers<typeof operations> => {
  const { foundation, execution, security, models, platform, emergency } = parts;
  const { base, opened, providers, modules, hostTools } = foundation;
  const {
    jobs,
    items,
    schedules,
    quotas,
    sessionStore,
    attachments,
    approvals,
    sessions,
    skills,
    providerAccess,
    agents,
  } = execution;
  const { retention, webhooks, tools, remoteAgents, mcpServers, runs, triggers, a2a, worker } = execution;
  const { Service } = base.config;
  const { log, now } = base;
  const openAi = openAiFeature({
    ...base,
    launch: runs.launch,
    answers: runs.answers,
    access: runs.access,
    records: runs.records,
    runEvents: (tenantId, runId) => runs.events(tenantId, runId, 0),
    async cancelRun(context, runId) {
      await runs.handlers.cancel(context, { params: { runId }, query: {}, headers: {}, body: undefined });
    },
    sessions,
    runsOnClient: (name) => hostTools.registry.get(name)?.descriptor.runsOnClient === true,
    serverOf: (tenantId, name) => (tools.get(name) === undefined ? mcpServers.tools.serverOf(tenantId, name) : null),
    agents: agents.known,
    exposed: agents.models,
    agentExists: async (tenantId, name) =>
      agents.models.find(tenantId, name) !== null || (await agents.exists(tenantId, name)),
    inspectsInput: execution.content.guards?.input === true,
    files: { keep: attachments.keep, named: attachments.runs.named },
  });
  return {
    agents: agents.handlers,
    runs: runs.handlers,
    jobs: jobsFeature({
      store: jobs,
      items,
      work: {
        ...runs.jobWork,
        cancelPending: async (job, actor) =>
          (await webhooks.cancelPending(job)) || runs.jobWork.cancelPending(job, actor),
      },
      owners: base.owners,
      heedCancel(id) {
        base.announcements.announce('cancel', id);
        return worker.heedCancels();
      },
      log,
      now,
    }).handlers,
    schedules: schedules.handlers,
    triggers: triggers.handlers,
    a2a: a2a.handlers,
    scores: scoresFeature({ ...base, findRun: runs.access.find }).handlers,
    judges: judgesFeature({
      ...base,
      judges: modules.judges.map(({ value }) => value),
      launch: runs.launch,
      access: runs.access,
      records: runs.records,
      agents: agents.source,
      engine: runs.engine,
    }).handlers,
    traces: execution.externalRuns.handlers,
    replays: replaysFeature({
      ...base,
      access: runs.access,
      records: runs.records,
      launch: runs.launch,
      variants: agents.variants,
      sessions: sessionStore,
      recordingEnabled: Service.RunRecording.Enabled,
    }).handlers,
    sessions: sessions.handlers,
    statistics: statisticsFeature({
      ...base,
      recalculate: runs.recalculateCosts,
      currency: Service.Pricing.Currency,
    }).handlers,
    attachments: attachments.handlers,
    tools: toolsFeature({ ...base, tools, remoteTools: mcpServers.tools }).handlers,
    skills: skills.skills,
    grants: skills.grants,
    approvals: approvals.handlers,
    approvalRules: approvals.rules,
    models: models.handlers,
    quotas: quotas.handlers,
    webhooks: webhooks.handlers,
    mcpServers: mcpServers.handlers,
    remoteAgents: remoteAgents.handlers,
    policyTests: policyTestsFeature({ ...base, providers, tools }).handlers,
    keys: security.keys,
    tenants: tenantsFeature(base).handlers,
    providerBindings: providerAccess.bindings,
    egressPolicies: providerAccess.policies,
    emergency: emergency.handlers,
    retention: retention.handlers,
    dataSubjects: dataSubjectsFeature({
      ...base,
      resolver: modules.dataSubjectResolver,
      eraseSessions: sessions.erasure,
      assertReleasable: attachments.assertReleasable,
      releaseBytes: attachments.releaseBytes,
      messagesOf: sessions.publicMessages,
    }).handlers,
    mcpEndpoint: parts.mcpEndpoint.handlers,
    audit: auditFeature({ ...base, signingKeyFile: opened.signingKeyFile, shared: opened.shared }).handlers,
    openAiModels: openAi.models,
    chatCompletions: openAi.chatCompletions,
    embeddings: openAi.embeddings,
    responses: openAi.responses,
    conversations: openAi.conversations,
    diagnostics: diagnosticsOf(parts),
    meta: platform.meta,
  };
};
