import type { Config } from '../../core/config/schema.ts';
import type { AgentFlow, WindowLimit } from '../../engine/compiled-agent.ts';
import type { FlowSource } from './flow.rules.ts';

type Settings = Config['Service']['Scheduling']['LaneFlows'];
type LaneSettings = Settings[string];

/** The flows of lanes, by configuration. */
export interface LaneFlows {
  readonly hasAny: boolean;
  /** How jobs are let into a lane; null: as they come. `keyed`: what the keys lead into. */
  sourceOf(lane: string, keyed: unknown): FlowSource | null;
}

const windowOf = (settings: LaneSettings['RateLimit']): WindowLimit | null =>
  settings && { limit: settings.Limit, windowMs: settings.Window, key: settings.Key };

const flowOf = ({ RateLimit, Throttle, Debounce, Singleton, Concurrency, Priority }: LaneSettings): AgentFlow => ({
  rateLimit: windowOf(RateLimit),
  throttle: windowOf(Throttle),
  debounce: Debounce && { windowMs: Debounce.Window, maxWaitMs: Debounce.MaxWait, key: Debounce.Key },
  singleton: Singleton && { mode: Singleton.Mode, key: Singleton.Key },
  concurrency: Concurrency && { limit: Concurrency.Limit, key: Concurrency.Key },
  priority: Priority && {
    key: Priority.Key,
    values: Object.keys(Priority.Values).length === 0 ? null : Priority.Values,
    default: Priority.Default,
  },
});

export const laneFlows = (settings: Settings): LaneFlows => {
  const flows = new Map(
    Object.entries(settings)
      .map(([lane, of]) => [lane, flowOf(of)] as const)
      .filter(([, flow]) => Object.values(flow).some((gate) => gate !== null)),
  );
  return {
    hasAny: flows.size > 0,
    sourceOf(lane, keyed) {
      const flow = flows.get(lane);
      return flow === undefined ? null : { kind: 'lane', name: lane, flow, keyed };
    },
  };
};
