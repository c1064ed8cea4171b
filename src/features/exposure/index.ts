import type { Logger } from '../../core/logger.ts';
import type { AgentSource } from '../../engine/compiled-agent.ts';
import type { TreeLimits } from '../../engine/control/index.ts';
import { type AgentPresentation, createExposedAgents, type ExposedAgents } from './exposed-agents.ts';
import { createExposedRuns, type ExposedRuns, type ExposedRunsDeps } from './exposed-runs.ts';
import { type ExposedBudget, exposedLimits } from './exposure.rules.ts';

export interface ExposureDeps extends Omit<ExposedRunsDeps, 'source' | 'limits'> {
  readonly agents: Pick<AgentSource, 'compile'>;
  readonly presentationOf: (tenantId: string, name: string) => Promise<AgentPresentation | null>;
  /** Limits of every tree. */
  readonly tree: TreeLimits;
  readonly log: Pick<Logger, 'warn'>;
}

/** What a protocol offers to other systems, as the host has set it. */
export interface ExposureSettings {
  /** Such as `mcp`. */
  readonly source: string;
  /** The setting with the allowlist, for messages. */
  readonly setting: string;
  readonly allowlist: readonly string[];
  readonly budget: ExposedBudget;
}

export interface Exposure {
  readonly agents: ExposedAgents;
  readonly runs: ExposedRuns;
}

/** Agents that other systems may call through a protocol. Each protocol has its own. */
export const exposureFeature =
  (deps: ExposureDeps) =>
  ({ source, setting, allowlist, budget }: ExposureSettings): Exposure => ({
    agents: createExposedAgents({ ...deps, setting, allowlist }),
    runs: createExposedRuns({ ...deps, source, limits: exposedLimits(deps.tree, budget) }),
  });

export { doorOf } from './doors.ts';
export type { AgentPresentation, ExposedAgent, ExposedAgents } from './exposed-agents.ts';
export type { ExposedRequest, ExposedRuns } from './exposed-runs.ts';
