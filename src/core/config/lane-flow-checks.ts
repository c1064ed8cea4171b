import { flowLimits } from '../../contract/flow-settings.ts';
import type { Check } from './checks.ts';
import type { LaneFlowSettings } from './sections/lane-flow.settings.ts';

const flowKey = (lane: string): string => `Service:Scheduling:LaneFlows:${lane}`;

/** Jobs of the service itself, which no flow may hold or drop: what others wait for would be lost. */
const ownJobs = [
  { handlerKey: 'acp.webhook-delivery', what: 'deliveries of webhooks' },
  { handlerKey: 'acp.retention', what: 'sweeps of the service' },
] as const;

/** Each rule about the members of one flow: which one is wrong, and how. */
const membersOf = ({ Debounce, Throttle, Singleton, Priority }: LaneFlowSettings): readonly [string, string][] => {
  const wrong: [string, string][] = [];
  if (Debounce !== null && (Throttle !== null || Singleton !== null))
    wrong.push(['Debounce', 'expected no Throttle and no Singleton beside it: each says when a job starts']);
  if (Debounce !== null && Debounce.MaxWait !== null && Debounce.MaxWait < Debounce.Window)
    wrong.push(['Debounce:MaxWait', 'expected at least Window']);
  const values = Object.keys(Priority?.Values ?? {}).length;
  if (values > 0 && Priority?.Key === null)
    wrong.push(['Priority:Values', 'expected a Key, by which they are looked up']);
  if (values > flowLimits.mostValues) wrong.push(['Priority:Values', `expected at most ${flowLimits.mostValues}`]);
  return wrong;
};

export const laneFlowChecks: readonly Check[] = [
  {
    keys: ['Service:Scheduling:LaneFlows'],
    severity: 'error',
    run: ({ Service: { Scheduling } }) =>
      Object.entries(Scheduling.LaneFlows).flatMap(([lane, flow]) =>
        membersOf(flow).map(([member, message]) => ({ key: `${flowKey(lane)}:${member}`, message })),
      ),
  },
  {
    keys: ['Service:Scheduling:LaneFlows', 'Service:Scheduling:LaneByHandlerKey'],
    severity: 'error',
    run: ({ Service: { Scheduling } }) =>
      ownJobs.flatMap(({ handlerKey, what }) => {
        const lane = Scheduling.LaneByHandlerKey[handlerKey] ?? 'default';
        if (Scheduling.LaneFlows[lane] === undefined) return [];
        const message = `${what} are in this lane, and no flow may hold or drop them: give ${handlerKey} another lane in Service:Scheduling:LaneByHandlerKey`;
        return [{ key: flowKey(lane), message }];
      }),
  },
];
