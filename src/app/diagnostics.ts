import type { CallContext } from '../core/context.ts';
import type { ModelHealth } from '../features/models/index.ts';
import { diagnosticsService } from '../features/platform/index.ts';
import type { JobWorker } from '../scheduler/job-worker.ts';
import type { Foundation } from './foundation.ts';

interface DiagnosticsParts {
  readonly foundation: Foundation;
  readonly worker: Pick<JobWorker, 'activeJobs'>;
  readonly works: boolean;
  readonly health: Pick<ModelHealth, 'known'>;
  readonly countAgents: (context: CallContext) => Promise<number>;
}

/** What `GET /api/diagnostics` tells of the composed parts. */
export const diagnosticsOf = ({ foundation, worker, works, health, countAgents }: DiagnosticsParts) => {
  const { base, opened, providers, modules, hostTools, reporting } = foundation;
  const tools = (path: string): string[] =>
    modules.registrations
      .filter(({ place }) => place([]).file === path)
      .map(({ definition }) => `tool:${definition.name}`);
  const judges = (path: string): string[] =>
    modules.judges.filter(({ file }) => file === path).map(({ value }) => `judge:${value.name}`);
  return diagnosticsService({
    config: base.config,
    instanceId: reporting.instanceId,
    lifecycle: base.lifecycle,
    store: {
      provider: opened.place.provider,
      pending: opened.pending,
      probe: () => base.storage.probe(),
    },
    jobs: { enabled: works, active: () => worker.activeJobs },
    modelProviders: () =>
      providers.list().map((provider) => {
        const { status, circuitOpen } = health.known(provider);
        return { name: provider.name, status, circuitOpen };
      }),
    toolCount: () => hostTools.registry.list().length,
    countAgents,
    modules: base.config.Host.Modules.map((path) => ({ path, registered: [...tools(path), ...judges(path)] })),
    now: base.now,
  });
};
