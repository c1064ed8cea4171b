import type { App, AppOptions } from './app/app-interface.ts';
import { composeApp } from './app/compose-app.ts';
import { composeExecution } from './app/execution.ts';
import { createFoundation } from './app/foundation.ts';
import { apiHandlers } from './app/handlers.ts';
import { createLifecycle } from './app/lifecycle.ts';
import { mountedOperations } from './app/mounted-operations.ts';
import { identityOptions } from './app/options.ts';
import { partitionCare } from './app/partition-care.ts';
import { assertMayListen, assertMayOffer, storeReadiness, warnOfClosedDoors } from './app/readiness.ts';
import { serviceLeases } from './app/service-leases.ts';
import { composeSetBack } from './app/set-back.ts';
import { createDispatch, type Dispatch } from './core/dispatch.ts';
import type { LeftoverClosings } from './core/instance-state.ts';
import { createCallMetrics } from './core/telemetry/call-metrics.ts';
import { agentBodyErrors } from './features/agents/index.ts';
import { agentBatchKey } from './features/batches/index.ts';
import { emergencyFeature } from './features/emergency/index.ts';
import { mcpEndpointFeature } from './features/mcp-endpoint/index.ts';
import { modelsFeature } from './features/models/index.ts';
import { platformFeature } from './features/platform/index.ts';
import { anonymousIsPossible, securityFeature } from './features/security/index.ts';

export type { App, AppDescription, AppOptions } from './app/app-interface.ts';

// A module's own work; a drain has its time already.
const listenersEndMs = 5000;

/** The composition root: configuration → store → features → dispatch. Throws before anything listens. */
export const createApp = async ({ config, mode, ...options }: AppOptions): Promise<App> => {
  const { Service, Host } = config.values;
  const foundation = await createFoundation({ config, mode, ...options });
  const { base, opened, providers, modules, hostTools, reporting } = foundation;
  const { storage, log } = base;
  try {
    await foundation.storeTime.start();
    const execution = await composeExecution(foundation);
    const {
      wake,
      quotas,
      attachments,
      approvals,
      sessions,
      skills,
      providerAccess,
      retention,
      idempotency,
      webhooks,
      remoteAgents,
      mcpServers,
      runs,
      schedules,
      moduleJobs,
      externalRuns,
      triggers,
      a2a,
      worker,
      heartbeats,
      places,
    } = execution;
    const { ready, assertReady } = storeReadiness(opened);
    const works = mode === 'serve' && Service.Scheduling.Enabled && Service.Scheduling.RunWorker;
    const access = identityOptions(config.values);
    const security = securityFeature({ ...base, options: access });
    const models = modelsFeature({
      ...base,
      providers,
      allows: providerAccess.access.allows,
      settings: { cacheTtlMs: Service.Health.CacheTtl, backgroundIntervalMs: Service.Health.BackgroundInterval },
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
      sharing: foundation.sharing,
      migrating: !ready,
    });
    const emergency = emergencyFeature({
      ...base,
      now: base.storeClock.now,
      engine: runs.engine,
      places,
      runHandlerKeys: [...Object.keys(runs.jobHandlers), agentBatchKey],
      wake,
    });
    const mcpEndpoint = mcpEndpointFeature({
      ...base,
      expose: execution.exposure,
      agents: execution.agents.source,
      filesOf: attachments.ofRun,
      dispatch: () => dispatch,
    });
    const leased = serviceLeases(base);
    const { partitions } = storage.dialect;
    const care = partitions === undefined ? null : partitionCare(partitions, base.storeClock);
    const leftovers: LeftoverClosings = {
      ...runs.leftovers,
      ...idempotency.leftovers,
      ...quotas.leftovers,
      ...sessions.leftovers,
      ...leased.leftovers,
      ...attachments.leftovers,
      ...webhooks.leftovers,
      ...retention.leftovers,
    };
    const life = createLifecycle({
      ...base,
      engine: runs.engine,
      worker,
      works,
      parts: [
        leased.part,
        ...(heartbeats === null ? [] : [heartbeats]),
        { started: attachments.startSweep, close: attachments.close },
        leased.guarded('loose-contents', attachments.loose),
        ...(care === null ? [] : [leased.guarded('partitions', care.making), care.looking]),
        leased.guarded('approval-expiration', approvals.expiration),
        sessions,
        leased.guarded('retention', retention.schedule),
        leased.guarded('schedule-dispatch', schedules.dispatch),
        moduleJobs.part,
        leased.guarded('model-health', models.health.background),
        ...(mcpServers.background === null ? [] : [leased.guarded('mcp-discovery', mcpServers.background)]),
        security,
        ...(runs.reconciliation === null ? [] : [leased.guarded('run-reconciliation', runs.reconciliation)]),
        { started: runs.started, close: runs.close },
        triggers,
        mcpEndpoint.part,
        a2a,
        externalRuns,
        idempotency,
        { close: () => base.listeners?.told(listenersEndMs) },
        quotas,
        { close: webhooks.close },
        composeSetBack({ ...base, worker, jobsMoved: webhooks.jobsMoved }),
        { close: mcpServers.close },
        { close: remoteAgents.close },
        skills,
        providers,
        hostTools,
        base.state,
        { close: foundation.storeTime.stop },
        opened,
        reporting,
      ],
    });
    if (mode === 'serve') opened.holdWhenAsked?.(life.drain);
    const dispatch: Dispatch = createDispatch(
      mountedOperations(config.values),
      apiHandlers({ foundation, execution, works, security, models, platform, emergency, mcpEndpoint }),
      {
        assertReady(operationId) {
          assertReady();
          skills.preconditions[operationId]?.();
          // A process that stood still reads first what it may have missed.
          return base.state.current() ?? undefined;
        },
        idempotency: idempotency.idempotency,
        bodyErrors: agentBodyErrors,
        metrics: createCallMetrics(base.telemetry, Service.RateLimit.Enabled ? Service.RateLimit.Partition : null),
      },
    );

    if (ready) {
      if (mode === 'serve') await assertMayListen(config, security, modules);
      if (mode !== 'preview') await partitions?.prepare(base.storeClock.now());
      await base.state.load();
      if (mode === 'serve') {
        await assertMayOffer(config, a2a);
        await warnOfClosedDoors(config, security, log);
      }
      if (mode !== 'preview')
        await base.state.recover(leftovers).catch((error: unknown) => {
          if (opened.trouble() === null) throw error;
          log.error(
            { error },
            'What the last owner of the store left open is closed by the next start with a store to write to',
          );
        });
    }
    return composeApp({
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
      codeAgents: execution.codeAgents,
    });
  } catch (error) {
    base.state.close();
    foundation.storeTime.stop();
    await opened.close();
    throw error;
  }
};
