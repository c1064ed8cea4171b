import type { App, AppOptions } from './app/app-interface.ts';
import { createLifecycle } from './app/lifecycle.ts';
import { identityOptions, jobWorkerOptions } from './app/options.ts';
import { AcpError } from './contract/errors.ts';
import { ConfigError, remoteAccessProblem } from './core/config/index.ts';
import type { Principal } from './core/context.ts';
import { parseDefinitionDocuments } from './core/definition-documents.ts';
import { createDispatch } from './core/dispatch.ts';
import { newId } from './core/ids.ts';
import { loadModule } from './core/load-module.ts';
import { createLogger } from './core/logger.ts';
import { contentFiles, contentFolder } from './db/content-files.ts';
import { memoryContent } from './db/content-memory.ts';
import { type OpenedStorage, openStorage } from './db/open-storage.ts';
import { storeOptions } from './db/store-options.ts';
import { agentReferences, agentsFeature, loadCodeAgents } from './features/agents/index.ts';
import { approvalsFeature } from './features/approvals/index.ts';
import { attachmentsFeature } from './features/attachments/index.ts';
import { createAuditTrail } from './features/audit/index.ts';
import { createJobStore } from './features/jobs/index.ts';
import { memoryFeature } from './features/memory/index.ts';
import { modelsFeature } from './features/models/index.ts';
import { hostLibrary, hostRunAuthorization, loadHostModules } from './features/modules/index.ts';
import { platformFeature } from './features/platform/index.ts';
import { replaysFeature } from './features/replays/index.ts';
import { preflightCheck, runsFeature } from './features/runs/index.ts';
import { runScores, scoresFeature } from './features/scores/index.ts';
import { anonymousIsPossible, securityFeature } from './features/security/index.ts';
import { createSessionAccess, sessionsFeature } from './features/sessions/index.ts';
import { skillsFeature } from './features/skills/index.ts';
import { statisticsFeature } from './features/statistics/index.ts';
import { loadHostTools, toolsFeature } from './features/tools/index.ts';
import { operations } from './operations.ts';
import { createModelProviders } from './providers/models/index.ts';
import { createJobWorker } from './scheduler/job-worker.ts';

export type { App, AppDescription, AppOptions } from './app/app-interface.ts';

const localPrincipal: Principal = {
  kind: 'Host',
  role: 'Admin',
  scopes: null,
  actor: null,
  userId: null,
  apiKey: null,
  permissions: null,
};

/** The composition root: configuration → store → features → dispatch. Throws before anything listens. */
export const createApp = async ({ config, mode, ...options }: AppOptions): Promise<App> => {
  const { Service, Host } = config.values;
  const log = options.log ?? createLogger(Host.LogLevel);
  const cwd = options.cwd ?? process.cwd();
  const now = Date.now;
  const lifecycle = { draining: false };

  const providers = createModelProviders(Service.Providers, {
    log: (entry) => log.warn({ ...entry }, 'A model provider failed'),
  });
  const modules = await loadHostModules(Host.Modules, (path) => loadModule(path, hostLibrary));
  const authorization = hostRunAuthorization(modules.runAuthorization, log);
  const hostTools = await loadHostTools(config, modules);

  const opened: OpenedStorage = await openStorage({
    ...storeOptions(config.values, cwd),
    now,
    log,
    waitMs: mode === 'local' ? 5000 : 1000,
  });
  const { storage } = opened;
  try {
    const audit = createAuditTrail({ storage, log, now, newId });
    // What nearly every feature needs; each takes what its own dependencies name.
    const base = {
      config: config.values,
      storage,
      audit,
      authorization,
      prefix: Host.Prefix,
      lifecycle,
      log,
      now,
      newId,
    };
    const memory = memoryFeature({ storage, now });
    const attachments = attachmentsFeature({
      ...base,
      content: opened.path === null ? memoryContent() : contentFiles(contentFolder(opened.path)),
      limits: {
        maxBytes: Service.Attachments.MaxBytes,
        allowedMediaTypes: Service.Attachments.AllowedMediaTypes,
      },
      ownership: createSessionAccess(Service.SessionOwnership),
      session: (tenantId, sessionId) => sessions.store.get(tenantId, sessionId),
    });
    const approvals = approvalsFeature({
      ...base,
      policy: modules.approvalPolicy,
      presenters: modules.approvalPresenters,
      continuations: {
        queued: (handover, at) => runs.queue.continuation(handover, at),
        wake: () => worker.wake(),
      },
      contextOf: (plan) => runs.queue.contextOf(plan),
    });
    const sessions = sessionsFeature({
      ...base,
      ownership: Service.SessionOwnership,
      deletions: [attachments.removedWithSession, memory.sessionDeleted, approvals.onSessionDeleted],
      cleanups: [attachments.cleanupWithSession],
      openRequests: [approvals.pauses.open],
      recordReasoningDeltas: Service.RunRecording.RecordReasoningDeltas,
    });
    const skills = await skillsFeature({ ...base, ownsStore: true, modules: modules.skills });
    const references = agentReferences(providers, hostTools.registry, Service, {
      hostSkills: skills.hostSkills,
      builtInTools: (definition, enabled) => [...memory.builtInTools(definition), ...skills.tools(enabled)],
      loopCriteria: modules.loopCriteria,
    });
    const codeAgents = await loadCodeAgents(Host.Agents, {
      ...references,
      parse: parseDefinitionDocuments,
      modules: modules.agents,
    });
    for (const warning of codeAgents.warnings) log.warn({ ...warning }, 'An agent of the host has a warning');
    const jobs = createJobStore(storage);
    const agents = agentsFeature({
      ...base,
      ownsStore: true,
      references,
      codeAgents,
      history: ({ tenantId, principal }, sessionId) => sessions.historyFor(tenantId, sessionId, principal),
      skills: skills.agentSkills,
      attachments: attachments.runs,
      reserveRatio: Service.Preflight.ReserveRatio,
    });
    const runs = runsFeature({
      ...base,
      agents: agents.source,
      sessions,
      jobs,
      authorizer: modules.toolAuthorizer,
      attachments: attachments.runs,
      saveAttachment: attachments.save,
      gate: approvals.gate,
      pauseJournal: approvals.pauseJournal,
      pauses: approvals.pauses,
      scoresOf: runScores(storage),
      providers,
      preflight: Service.Preflight.Enabled
        ? preflightCheck(Service.Preflight.ReserveRatio, sessions.history, attachments.runs)
        : null,
      memory: memory.memory,
      structuredResponseValidators: modules.structuredResponseValidators,
      loopCriteria: modules.loopCriteria,
      wake: () => worker.wake(),
    });
    const worker = createJobWorker(
      { queue: jobs, handlers: runs.jobHandlers, lost: runs.lostJob, now, log },
      jobWorkerOptions(config.values),
    );
    // With pending migrations tables may be missing: nothing is recovered and nothing served but health and meta.
    const ready = opened.pending.length === 0;
    const works = mode === 'serve' && Service.Scheduling.Enabled && Service.Scheduling.RunWorker;
    const access = identityOptions(config.values);
    const security = securityFeature({ ...base, options: access });
    const platform = platformFeature({
      ...base,
      allowRemoteAccess: Host.AllowRemoteAccess,
      hasAuthToken: Host.AuthToken !== null,
      hasActiveKey: security.hasActiveKey,
      anonymousIsPossible: anonymousIsPossible(access),
      storage: { provider: opened.path === null ? 'Memory' : 'Sqlite', persistent: storage.persistent },
      jobWorkerEnabled: () => works,
      probeStore: () => storage.probe(),
      migrating: !ready,
    });
    const life = createLifecycle({
      ...base,
      state: lifecycle,
      engine: runs.engine,
      worker,
      works,
      runs,
      parts: [
        { recover: attachments.recover, started: attachments.startSweep, close: attachments.close },
        { started: approvals.expiration.start, close: approvals.expiration.close },
        sessions,
        { started: runs.started, close: runs.close },
        skills,
        providers,
        hostTools,
        opened,
      ],
    });
    const assertReady = (): void => {
      if (ready) return;
      const names = opened.pending.join(', ');
      throw new AcpError('migrating', `The store waits for migrations (${names}); run \`acp db migrate\`.`, {
        details: { retryAfterMs: 5000 },
      });
    };
    const dispatch = createDispatch(
      operations,
      {
        agents: agents.handlers,
        runs: runs.handlers,
        scores: scoresFeature({ ...base, findRun: runs.access.find }).handlers,
        replays: replaysFeature({
          ...base,
          access: runs.access,
          records: runs.records,
          variants: agents.variants,
          engine: runs.engine,
          turns: sessions.turns,
          sessions: sessions.store,
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
        models: modelsFeature({ providers }).handlers,
        keys: security.keys,
        meta: platform.meta,
      },
      assertReady,
    );

    if (ready) {
      const problem = remoteAccessProblem(config, {
        hasActiveApiKey: await security.hasActiveKey(),
        hasAuthorizationHandler: false,
      });
      if (mode === 'serve' && problem !== null) throw new ConfigError([problem]);
      await life.recover();
    }

    return {
      dispatch,
      localCaller: { principal: localPrincipal, tenantId: Service.DefaultTenantId },
      config,
      log,
      authenticate: (request, operation) =>
        operation?.role === null ? security.identity.metaCaller(request) : security.identity.authenticate(request),
      health: platform.health,
      started(url) {
        opened.ownership?.announce(url);
        if (ready) life.started();
      },
      drain: life.drain,
      close: life.close,
      describe: () => ({
        storePath: opened.path,
        pendingMigrations: opened.pending,
        providers: providers.list().map(({ name, kind }) => ({ name, kind })),
        tools: hostTools.registry.list().map(({ descriptor }) => descriptor.name),
        modules: modules.names,
        codeAgents: [...codeAgents.contents.keys()],
      }),
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
};
