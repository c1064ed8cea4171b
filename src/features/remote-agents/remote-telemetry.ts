import type { Telemetry } from '../../core/telemetry/telemetry.ts';

/** What is counted of the remote agents that this service calls. */
export const createRemoteAgentTelemetry = ({ metrics }: Pick<Telemetry, 'metrics'>) => {
  const agent = 'acp.a2a.agent';
  const duration = metrics.histogram('acp.a2a.client.duration', 'Requests to remote agents.', 's', [
    agent,
    'rpc.method',
    'error.type',
  ]);
  const drift = metrics.counter('acp.a2a.card.drift', 'Cards of remote agents that have changed.', '{card}', [agent]);
  return {
    requested: (name: string, method: string, seconds: number, errorType: string | null): void =>
      duration.record(seconds, [name, method, errorType]),
    drifted: (name: string): void => drift.add(1, [name]),
  };
};

export type RemoteAgentTelemetry = ReturnType<typeof createRemoteAgentTelemetry>;
