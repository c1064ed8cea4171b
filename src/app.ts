import { appFace } from './app/app-face.ts';
import type { App, AppOptions } from './app/app-interface.ts';
import { diagnosticsOf } from './app/diagnostics.ts';
import { layFoundation } from './app/foundation.ts';
import { createLifecycle } from './app/lifecycle.ts';
import { identityOptions, jobWorkerOptions } from './app/options.ts';
import { assertMayListen, storeReadiness } from './app/readiness.ts';
import { composeDataSubjects, composeRetention } from './app/retention.ts';
import { serviceLeases } from './app/service-leases.ts';
import { watchJobs } from './app/telemetry.ts';
import { createDispatch } from './core/dispatch.ts';
import { parseDefinitionDocuments } from './core/documents/definition-documents.ts';
import type { LeftoverClosings } from './core/instance-state.ts';
import { agentReferences, agentsFeature, loadCodeAgents } from './features/agents/index.ts';
import { approvalsFeature } from './features/approvals/index.ts';
import { attachmentsFeature } from './features/attachments/index.ts';
import { auditFeature } from './features/audit/index.ts';
import { emergencyFeature } from './features/emergency/index.ts';
import { guardsFeature } from './features/guards/index.ts';
import { createJobStore, jobsFeature } from './features/jobs/index.ts';
import { judgesFeature } from './features/judges/index.ts';
import { memoryFeature } from './features/memory/index.ts';
import { modelsFeature } from './features/models/index.ts';
import { platformFeature } from './features/platform/index.ts';
import { policyTestsFeature } from './features/policy-tests/index.ts';
import { providerAccessFeature } from './features/provider-access/index.ts';
import { quotasFeature } from './features/quotas/index.ts';
import { replaysFeature } from './features/replays/index.ts';
import {
  createRunWrites,
  createTurnStore,
  pauseContextOf,
  preflightCheck,
  runsFeature,
} from './features/runs/index.ts';
import { runScores, scoresFeature } from './features/scores/index.ts';
import { anonymousIsPossible, securityFeature } from './features/security/index.ts';
import { createSessionStore, createSessionWaits, sessionsFeature } from './features/sessions/index.ts';
import { skillsFeature } from './features/skills/index.ts';
import { statisticsFeature } from './features/statistics/index.ts';
import { tenantsFeature } from './features/tenants/index.ts';
import { toolsFeature } from './features/tools/index.ts';
import { operations } from './operations.ts';
import { createJobSignal } from './scheduler/job-signal.ts';
import { createJobWorker } from './scheduler/job-worker.ts';

export type { App, AppDescription, AppOptions } from './app/app-interface.ts';

// A module's own work; a drain has its time already.
const listenersEndMs = 5000;

/** The composition root: configuration → store → features → dispatch. Throws before anything listens. */
export const createApp = async ({ config, mode, ...options }: AppOptions): Promise<App> => {
  const { Service, Host } = config.values;
  const foundation = await layFoundation({ config, mode, ...options });
  const { base, opened, providers, modules, hostTools, reporting } = foundation;
  const { storage, log, clock, now } = base;
  try {
    const content = guardsFeature({ ...base, guards: modules.guards, usesPattern: modules.usesPatternGuard });
    const memory = memoryFeature({ storage, now });
    const jobs = createJobStore(storage);
    const { wake, heard } = createJobSignal();
    const quotas = quotasFeature({ ...base, turns: createTurnStore(storage) });
    const writes = createRunWrites({ ...base, jobs, quotas: quotas.active, wake });
    const sessionStore = createSessionStore(storage);
    const waits = createSessionWaits(base);
    const attachments = attachmentsFeature({
      ...base,
      content: opened.contents,
      limits: {
        maxBytes: Service.Attachments.MaxBytes,
        allowedMediaTypes: Service.Attachments.AllowedMediaTypes,
      },
      session: sessionStore.get,
    });
    const approvals = approvalsFeature({
      ...base,
      guards: content,
      policy: modules.approvalPolicy,
      presenters: modules.approvalPresenters,
      continuations: { queued: writes.queued.resumption, wake: writes.queued.resumed },
      contextOf: pauseContextOf,
      waits,
    });
    const sessions = sessionsFeature({
      ...base,
      deletions: [attachments.removedWithSession, memory.sessionDeleted, approvals.onSessionDeleted],
      cleanups: [attachments.cleanupWithSession],
      store: sessionStore,
      waits,
      mailbox: approvals.mailbox,
      recordReasoningDeltas: Service.RunRecording.RecordReasoningDeltas,
    });
    const skills = await skillsFeature({ ...base, modules: modules.skills });
    const providerAccess = providerAccessFeature({ ...base, providers });
    const references = agentReferences(providers, hostTools.registry, Service, {
      hostSkills: skills.hostSkills,
      builtInTools: (definition, enabled) => [...memory.builtInTools(definition), ...skills.tools(enabled)],
      loopCriteria: modules.loopCriteria,
      allowsProvider: providerAccess.access.allows,
    });
    const codeAgents = await loadCodeAgents(Host.Agents, {
      ...references,
      parse: parseDefinitionDocuments,
      modules: modules.agents,
    });
    for (const warning of codeAgents.warnings) log.warn({ ...warning }, 'An agent of the host has a warning');
    const agents = agentsFeature({
      ...base,
      references,
      codeAgents,
      history: ({ tenantId, principal }, sessionId) => sessions.historyFor(tenantId, sessionId, principal),
      skills: skills.agentSkills,
      attachments: attachments.runs,
      reserveRatio: Service.Preflight.ReserveRatio,
    });
    const retention = composeRetention({ base, modules, jobs, sessions, attachments, wake });
    const runs = runsFeature({
      ...base,
      writes,
      providerAccess: providerAccess.access,
      agents: agents.source,
      sessions,
      jobs,
      authorizer: modules.toolAuthorizer,
      attachments: attachments.runs,
      saveAttachment: attachments.save,
      guards: content.guards,
      gate: approvals.gate,
      pauseJournal: approvals.pauseJournal,
      quotas: quotas.active,
      scoresOf: runScores(storage),
      providers,
      preflight: Service.Preflight.Enabled
        ? preflightCheck(Service.Preflight.ReserveRatio, sessions.history, attachments.runs)
        : null,
      memory: memory.memory,
      structuredResponseValidators: modules.structuredResponseValidators,
      loopCriteria: modules.loopCriteria,
      wake,
      keysKeptMs: retention.keysKeptMs,
    });
    const worker = createJobWorker(
      {
        queue: jobs,
        handlers: { ...runs.jobHandlers, ...retention.jobHandlers },
        lost: runs.lostJob,
        telemetry: watchJobs(base, jobs),
        clock,
        log,
      },
      jobWorkerOptions(config.values),
    );
    heard(worker.wake);
    const { ready, assertReady } = storeReadiness(opened);
    const works = mode === 'serve' && Service.Scheduling.Enabled && Service.Scheduling.RunWorker;
    const access = identityOptions(config.values);
    const security = securityFeature({ ...base, options: access });
    const models = modelsFeature({
      providers,
      allows: providerAccess.access.allows,
      settings: { cacheTtlMs: Service.Health.CacheTtl, backgroundIntervalMs: Service.Health.BackgroundInterval },
      clock,
    });
    const platform = platformFeature({
      ...base,
      modelsDegraded: models.health.degraded,
      allowRemoteAccess: Host.AllowRemoteAccess,
      hasAuthToken: Host.AuthToken !== null,
      hasIssuer: access.oidc !== null,
      hasActiveKey: security.hasActiveKey,
      anonymousIsPossible: anonymousIsPossible(access),
      storage: { provider: opened.place.provider, persistent: storage.persistent },
      jobWorkerEnabled: () => works,
      probeStore: () => storage.probe(),
      storeTrouble: opened.trouble,
      migrating: !ready,
    });
    const emergency = emergencyFeature({
      ...base,
      engine: runs.engine,
      runHandlerKeys: Object.keys(runs.jobHandlers),
      wake,
    });
    const leased = serviceLeases(base);
    const leftovers: LeftoverClosings = {
      ...runs.leftovers,
      ...sessions.leftovers,
      ...leased.leftovers,
      ...attachments.leftovers,
      ...retention.leftovers,
    };
    const life = createLifecycle({
      ...base,
      engine: runs.engine,
      worker,
      works,
      parts: [
        leased.part,
        { started: attachments.startSweep, close: attachments.close },
        leased.guarded('approval-expiration', approvals.expiration),
        sessions,
        leased.guarded('retention', retention.schedule),
        leased.guarded('model-health', models.health.background),
        security,
        ...(runs.reconciliation === null ? [] : [leased.guarded('run-reconciliation', runs.reconciliation)]),
        { started: runs.started, close: runs.close },
        { close: () => base.listeners?.told(listenersEndMs) },
        quotas,
        skills,
        providers,
        hostTools,
        opened,
        reporting,
      ],
    });
    const dispatch = createDispatch(
      operations,
      {
        agents: agents.handlers,
        runs: runs.handlers,
        jobs: jobsFeature({
          store: jobs,
          work: runs.jobWork,
          owners: base.owners,
          heedCancels: () => worker.heedCancels(),
          log,
          now,
        }).handlers,
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
        tools: toolsFeature({ ...base, tools: hostTools.registry }).handlers,
        skills: skills.skills,
        grants: skills.grants,
        approvals: approvals.handlers,
        approvalRules: approvals.rules,
        models: models.handlers,
        quotas: quotas.handlers,
        policyTests: policyTestsFeature({ ...base, providers, tools: hostTools.registry }).handlers,
        keys: security.keys,
        tenants: tenantsFeature(base).handlers,
        providerBindings: providerAccess.bindings,
        egressPolicies: providerAccess.policies,
        emergency: emergency.handlers,
        retention: retention.handlers,
        dataSubjects: composeDataSubjects({ base, modules, sessions, attachments }).handlers,
        audit: auditFeature({ ...base, signingKeyFile: opened.signingKeyFile }).handlers,
        diagnostics: diagnosticsOf({
          foundation,
          worker,
          works,
          health: models.health,
          countAgents: (context) => agents.count(context.tenantId),
        }),
        meta: platform.meta,
      },
      (operationId) => {
        assertReady();
        skills.preconditions[operationId]?.();
      },
    );

    if (ready) {
      if (mode === 'serve') await assertMayListen(config, security, modules);
      await base.state.load();
      if (mode !== 'preview')
        await base.state.recover(leftovers).catch((error: unknown) => {
          if (opened.trouble() === null) throw error;
          log.error(
            { error },
            'What the last owner of the store left open is closed by the next start with a store to write to',
          );
        });
    }
    return appFace({
      config,
      telemetry: base.telemetry,
      log,
      dispatch,
      security,
      platform,
      life,
      opened,
      ready,
      providers,
      hostTools,
      modules,
      codeAgents,
    });
  } catch (error) {
    await opened.close();
    throw error;
  }
};
