import { ModelCallError } from '../model-error.ts';

export type CircuitState = 'closed' | 'open' | 'half_open';

export interface CircuitSettings {
  readonly enabled: boolean;
  /** Counted failures in a row from which on calls are refused. */
  readonly failureThreshold: number;
  /** Milliseconds until one call may try again. */
  readonly breakDurationMs: number;
}

/** How an admitted call ended: `other` neither counts nor resets, such as a cancel or a refusal of the request. */
export type CallResult = 'success' | 'fault' | 'other';

export interface Circuit {
  readonly state: CircuitState;
  /** Throws `circuit_open` while calls are refused. */
  check(): void;
  /** The same, and takes the place of the probe where one is due. To be settled once, with how the call ended. */
  admit(): (result: CallResult) => void;
}

interface CircuitPorts {
  readonly now: () => number;
  readonly changed: (state: CircuitState) => void;
}

// A refused call behind a probe may be tried again soon: the probe decides within its own time limit.
const behindProbeMs = 1000;

const admitAlways: Circuit = { state: 'closed', check: () => undefined, admit: () => () => undefined };

/** The breaker of one provider and credential: closed → open → half open, with one probe at a time. */
export const createCircuit = (provider: string, settings: CircuitSettings, ports: CircuitPorts): Circuit => {
  if (!settings.enabled) return admitAlways;
  let state: CircuitState = 'closed';
  let failures = 0;
  let openUntil = 0;
  let probing = false;
  // A call that began before the state changed must not decide about the state that it finds when it ends.
  let generation = 0;

  const enter = (next: CircuitState): void => {
    state = next;
    generation += 1;
    ports.changed(next);
  };

  /** A circuit whose time has passed is half open, whether or not anybody has called meanwhile. */
  const current = (): CircuitState => {
    if (state === 'open' && ports.now() >= openUntil) enter('half_open');
    return state;
  };

  const refusal = (waitMs: number): ModelCallError =>
    new ModelCallError(
      'circuit_open',
      `Provider "${provider}" is not called after ${failures} failures in a row; it is tried again in ${Math.max(1, Math.ceil(waitMs / 1000))} s.`,
      { provider, retryAfterMs: Math.max(1, waitMs) },
    );

  const check = (): void => {
    const now = current();
    if (now === 'open') throw refusal(openUntil - ports.now());
    if (now === 'half_open' && probing) throw refusal(behindProbeMs);
  };

  const trip = (): void => {
    openUntil = ports.now() + settings.breakDurationMs;
    enter('open');
  };

  const settled = (result: CallResult): void => {
    if (result === 'success') failures = 0;
    if (result !== 'fault') return;
    failures += 1;
    if (failures >= settings.failureThreshold) trip();
  };

  const probed = (result: CallResult): void => {
    probing = false;
    if (result === 'other') return;
    if (result === 'fault') {
      failures += 1;
      trip();
      return;
    }
    failures = 0;
    enter('closed');
  };

  return {
    get state() {
      return current();
    },
    check,
    admit() {
      check();
      const admitted = generation;
      if (state === 'half_open') {
        probing = true;
        return probed;
      }
      return (result) => {
        if (admitted === generation) settled(result);
      };
    },
  };
};
