import type { Telemetry } from '../../core/telemetry/telemetry.ts';
import type { GuardSource, GuardVerdict } from '../../engine/control/index.ts';

const nameAttribute = 'acp.guard.name';

/** What the guards decide, how long they take, and how often they fail. */
export interface GuardMetrics {
  decided(name: string, decision: GuardVerdict['decision'], source: GuardSource, ms: number): void;
  failed(name: string): void;
}

export const createGuardMetrics = ({ metrics }: Telemetry): GuardMetrics => {
  if (!metrics.counts) return { decided: () => undefined, failed: () => undefined };
  const verdicts = metrics.counter('acp.guard.verdicts', 'Verdicts of content guards.', '{verdict}', [
    nameAttribute,
    'acp.guard.decision',
    'acp.guard.source',
  ]);
  const duration = metrics.histogram('acp.guard.duration', 'Time of a guard for one text.', 's', [nameAttribute]);
  const errors = metrics.counter('acp.guard.errors', 'Texts that a guard could not judge.', '{text}', [nameAttribute]);
  return {
    decided(name, decision, source, ms) {
      verdicts.add(1, [name, decision, source]);
      duration.record(ms / 1000, [name]);
    },
    failed: (name) => errors.add(1, [name]),
  };
};
