import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { AcpError } from './contract/errors.ts';
import type { Operation } from './contract/operation.ts';
import type { CallerRequest } from './core/caller-request.ts';
import { ConfigError, type LoadedConfig, remoteAccessProblem } from './core/config/index.ts';
import type { Principal } from './core/context.ts';
import { parseDefinitionDocuments } from './core/definition-documents.ts';
import { type Caller, createDispatch, type Dispatch } from './core/dispatch.ts';
import { newId } from './core/ids.ts';
import { loadModule } from './core/load-module.ts';
import { createLogger, type Logger } from './core/logger.ts';
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
import { type HealthReport, platformFeature } from './features/platform/index.ts';
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

export interface AppOptions {
  readonly config: LoadedConfig;
  readonly log?: Logger;
  /** `local` serves one command in process: no worker, no listener. */
  readonly mode: 'serve' | 'local';
  readonly cwd?: string;
}

export interface App {
  readonly dispatch: Dispatch;
  /** The caller of commands in process: who can open the store has full authority in the default tenant. */
  readonly localCaller: Caller;
  readonly config: LoadedConfig;
  readonly log: Logger;
  /** The caller of a transport's request; an operation without a role never refuses one. */
  authenticate(request: CallerRequest, operation?: Operation): Caller | Promise<Caller>;
  health(): Promise<HealthReport>;
  /** Called once the service listens: tells other processes where, and lets the worker take jobs. */
  started(url: string): void;
  /** Starts no more runs and waits for those in progress, at most `Drain:Timeout`; the rest ends as `shutdown`. */
  drain(): Promise<void>;
  close(): Promise<void>;
  describe(): AppDescription;
}

/** What `acp doctor` tells of the parts that the configuration brought. */
export interface AppDescription {
  readonly storePath: string | null;
  readonly pendingMigrations: readonly string[];
  readonly providers: readonly { readonly name: string; readonly kind: string }[];
  readonly tools: readonly string[];
  readonly modules: readonly string[];
  readonly codeAgents: readonly string[];
}

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
  const runAuthorization = hostRunAuthorization(modules.runAuthorization, log);
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
    const memory = memoryFeature({ storage, now });
    const attachments = attachmentsFeature({
      storage,
      content: opened.path === null ? memoryContent() : contentFiles(contentFolder(opened.path)),
      limits: {
        maxBytes: Service.Attachments.MaxBytes,
        allowedMediaTypes: Service.Attachments.AllowedMediaTypes,
      },
      authorization: runAuthorization,
      ownership: createSessionAccess(Service.SessionOwnership),
      session: (tenantId, sessionId) => sessions.store.get(tenantId, sessionId),
      prefix: Host.Prefix,
      log,
      now,
      newId,
    });
    const approvals = approvalsFeature({
      config: config.values,
      storage,
      audit,
      authorization: runAuthorization,
      policy: modules.approvalPolicy,
      presenters: modules.approvalPresenters,
      continuations: {
        queued: (handover, at) => runs.queue.continuation(handover, at),
        wake: () => worker.wake(),
      },
      contextOf: (plan) => runs.queue.contextOf(plan),
      log,
      now,
      newId,
    });
    const sessions = sessionsFeature({
      storage,
      ownership: Service.SessionOwnership,
      deletions: [attachments.removedWithSession, memory.sessionDeleted, approvals.onSessionDeleted],
      cleanups: [attachments.cleanupWithSession],
      openRequests: [approvals.pauses.open],
      prefix: Host.Prefix,
      recordReasoningDeltas: Service.RunRecording.RecordReasoningDeltas,
      authorization: runAuthorization,
      log,
      now,
      newId,
    });
    const skills = await skillsFeature({ config: config.values, storage, ownsStore: true, audit, log, now, newId });
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
      storage,
      ownsStore: true,
      references,
      codeAgents,
      history: ({ tenantId, principal }, sessionId) => sessions.historyFor(tenantId, sessionId, principal),
      skills: skills.agentSkills,
      attachments: attachments.runs,
      reserveRatio: Service.Preflight.ReserveRatio,
      audit,
      prefix: Host.Prefix,
      now,
    });
    const runs = runsFeature({
      config: config.values,
      storage,
      agents: agents.source,
      sessions,
      jobs,
      authorizer: modules.toolAuthorizer,
      authorization: runAuthorization,
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
      lifecycle,
      log,
      wake: () => worker.wake(),
      now,
      newId,
    });
    const worker = createJobWorker(
      { queue: jobs, handlers: runs.jobHandlers, lost: runs.lostJob, now, log },
      {
        owner: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
        maxConcurrentJobs: Service.Scheduling.MaxConcurrentJobs,
        pollIntervalMs: Service.Scheduling.PollInterval,
        leaseDurationMs: Service.Scheduling.LeaseDuration,
        lanes: Service.Scheduling.Lanes,
        maxConcurrentJobsPerLane: Service.Scheduling.MaxConcurrentJobsPerLane,
      },
    );
    // With pending migrations tables may be missing: nothing is recovered and nothing served but health and meta.
    const ready = opened.pending.length === 0;
    const works = mode === 'serve' && Service.Scheduling.Enabled && Service.Scheduling.RunWorker;
    const access = {
      allowRemoteAccess: Host.AllowRemoteAccess,
      authToken: Host.AuthToken,
      defaultTenantId: Service.DefaultTenantId,
      tenancy: {
        enabled: Host.Tenancy.Enabled,
        allowHeaderResolution: Host.Tenancy.AllowHeaderResolution,
        headerName: Host.Tenancy.HeaderName,
        allowedTenants: Host.Tenancy.AllowedTenants,
      },
    };
    const security = securityFeature({ storage, options: access, audit, log, now });
    const platform = platformFeature({
      prefix: Host.Prefix,
      allowRemoteAccess: Host.AllowRemoteAccess,
      hasAuthToken: Host.AuthToken !== null,
      hasActiveKey: security.hasActiveKey,
      anonymousIsPossible: anonymousIsPossible(access),
      storage: { provider: opened.path === null ? 'Memory' : 'Sqlite', persistent: storage.persistent },
      jobWorkerEnabled: () => works,
      probeStore: () => storage.probe(),
      migrating: !ready,
      lifecycle,
      now,
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
        scores: scoresFeature({ storage, audit, findRun: runs.access.find, now, newId }).handlers,
        replays: replaysFeature({
          authorization: runAuthorization,
          access: runs.access,
          records: runs.records,
          variants: agents.variants,
          engine: runs.engine,
          turns: sessions.turns,
          audit,
          recordingEnabled: Service.RunRecording.Enabled,
          lifecycle,
          prefix: Host.Prefix,
          now,
          newId,
        }).handlers,
        sessions: sessions.handlers,
        statistics: statisticsFeature({
          storage,
          authorization: runAuthorization,
          recalculate: runs.recalculateCosts,
          audit,
          currency: Service.Pricing.Currency,
          now,
        }).handlers,
        attachments: attachments.handlers,
        tools: toolsFeature({ storage, tools: hostTools.registry, authorization: runAuthorization }).handlers,
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
      await attachments.recover();
      const report = await runs.recover();
      await sessions.recover();
      if (report.orphanedRuns > 0 || report.requeuedRuns > 0)
        log.warn({ ...report }, 'The last owner of the store ended without closing its runs');
    }

    const drain = async (): Promise<void> => {
      lifecycle.draining = true;
      worker.stop();
      if (Service.Drain.Enabled) {
        let timer: NodeJS.Timeout | undefined;
        const timeUp = new Promise<void>((resolve) => {
          timer = setTimeout(resolve, Service.Drain.Timeout);
        });
        await Promise.race([runs.engine.idle(), timeUp]);
        clearTimeout(timer);
      }
      await runs.engine.shutdown();
      await worker.idle();
    };

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
        if (ready) runs.started();
        if (works && ready) worker.start();
        if (ready) attachments.startSweep();
        if (ready) approvals.expiration.start();
      },
      drain,
      async close() {
        await drain();
        await attachments.close();
        await approvals.expiration.close();
        sessions.close();
        runs.close();
        await skills.close();
        await providers.close();
        await hostTools.close();
        await opened.close();
      },
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
