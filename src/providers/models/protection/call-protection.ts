import { ModelCallError } from '../model-error.ts';
import { type CallLimit, createCallLimit } from './call-limit.ts';
import {
  type CallResult,
  type Circuit,
  type CircuitSettings,
  type CircuitState,
  createCircuit,
} from './circuit-breaker.ts';

export interface ProtectionSettings {
  readonly circuit: CircuitSettings;
  /** Calls in progress for each provider name; null: no limit. */
  readonly maxConcurrentCalls: number | null;
}

/** What metrics learn of it. */
export interface ProtectionObserver {
  circuitChanged(provider: string, state: CircuitState): void;
  /** Seconds that a call waited for a place. */
  waited(provider: string, seconds: number): void;
}

/** An admitted call. One of the two is called, once. */
export interface CallPermit {
  succeeded(): void;
  failed(error: unknown): void;
}

/** What every model call passes first: the circuit breaker, then the limit of calls in progress. */
export interface CallProtection {
  /**
   * Admitted at once where nobody has to wait. `owner` is the tenant whose own credential the call uses; null: the
   * global one. Throws or rejects with ModelCallError: `circuit_open`, or `canceled` by the signal.
   */
  admit(provider: string, owner: string | null, signal: AbortSignal): CallPermit | Promise<CallPermit>;
  /** State of the circuit of the global credential. */
  circuit(provider: string): CircuitState;
  /** Circuits that refuse calls, of any credential, by provider; providers without one are left out. */
  open(): ReadonlyMap<string, number>;
}

/** True for the failures that say something about the provider, and nothing about the request. */
const isFault = (error: unknown): boolean =>
  error instanceof ModelCallError &&
  error.mayFallBack &&
  error.type !== 'circuit_open' &&
  error.type !== 'provider_not_allowed';

const everyCall: CallPermit = { succeeded: () => undefined, failed: () => undefined };

/** For calls that reach nobody. */
export const noProtection: Pick<CallProtection, 'admit'> = { admit: () => everyCall };

export const defaultProtection: ProtectionSettings = {
  circuit: { enabled: true, failureThreshold: 5, breakDurationMs: 30_000 },
  maxConcurrentCalls: null,
};

export const createCallProtection = (
  settings: ProtectionSettings,
  now: () => number,
  observer: ProtectionObserver | null,
): CallProtection => {
  const circuits = new Map<string, { readonly provider: string; readonly circuit: Circuit }>();
  const limits = new Map<string, CallLimit>();

  const circuitOf = (provider: string, owner: string | null): Circuit => {
    // Neither name holds a space, so that no two pairs have one key.
    const key = owner === null ? provider : `${provider} ${owner}`;
    const entry = circuits.get(key);
    if (entry !== undefined) return entry.circuit;
    const changed = (state: CircuitState): void => observer?.circuitChanged(provider, state);
    const circuit = createCircuit(provider, settings.circuit, { now, changed });
    circuits.set(key, { provider, circuit });
    return circuit;
  };

  const newLimit = (): CallLimit => createCallLimit(settings.maxConcurrentCalls);

  const begin = (circuit: Circuit, limit: CallLimit): CallPermit => {
    let settle: (result: CallResult) => void;
    try {
      // Asked again after a wait: the circuit may have opened meanwhile.
      settle = circuit.admit();
    } catch (error) {
      limit.leave();
      throw error;
    }
    return {
      succeeded() {
        limit.leave();
        settle('success');
      },
      failed(error) {
        limit.leave();
        settle(isFault(error) ? 'fault' : 'other');
      },
    };
  };

  return {
    admit(provider, owner, signal) {
      const circuit = circuitOf(provider, owner);
      circuit.check();
      const limit = limits.getOrInsertComputed(provider, newLimit);
      const place = limit.enter(signal);
      if (place === null) return begin(circuit, limit);
      const since = performance.now();
      return place.then(
        () => {
          observer?.waited(provider, (performance.now() - since) / 1000);
          return begin(circuit, limit);
        },
        () => {
          throw new ModelCallError('canceled', `The call of provider "${provider}" was canceled.`, { provider });
        },
      );
    },
    circuit: (provider) => circuits.get(provider)?.circuit.state ?? 'closed',
    open() {
      const open = new Map<string, number>();
      for (const { provider, circuit } of circuits.values())
        if (circuit.state === 'open') open.set(provider, (open.get(provider) ?? 0) + 1);
      return open;
    },
  };
};
