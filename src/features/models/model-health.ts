import type { Clock, Timer } from '../../core/clock.ts';
import { isoTimeOrNull } from '../../core/iso-time.ts';
import {
  type ModelListAnswer,
  type ModelProvider,
  type ModelProviders,
  shownModels,
} from '../../providers/models/index.ts';
import type { ModelProviderHealth } from './models.schema.ts';

export interface ModelHealthSettings {
  readonly cacheTtlMs: number;
  /** Null: nobody is asked but on demand. */
  readonly backgroundIntervalMs: number | null;
}

export interface ModelHealthDeps {
  readonly providers: Pick<ModelProviders, 'list' | 'get' | 'protection'>;
  readonly settings: ModelHealthSettings;
  readonly clock: Clock;
}

/** What a check found, without what the circuit says at the moment. */
interface Check {
  readonly status: ModelProviderHealth['status'];
  readonly detail: string | null;
  readonly latencyMs: number | null;
  /** Epoch milliseconds; null: the provider has no list to ask for. */
  readonly checkedAt: number | null;
  readonly models: readonly string[];
  /** Until when it is used again. */
  readonly freshUntil: number;
}

// The list of models is a small answer; a provider that takes longer for it is unhealthy.
const longestCheckMs = 5000;

const judged = (provider: ModelProvider, answer: ModelListAnswer): Pick<Check, 'status' | 'detail' | 'models'> => {
  if (answer.kind === 'none') return { status: 'Unknown', detail: 'no list of models', models: [] };
  if (answer.kind === 'failed') {
    const status = answer.httpStatus === null ? '' : `HTTP ${answer.httpStatus} `;
    return { status: 'Unhealthy', detail: `${status}${answer.errorClass}`, models: [] };
  }
  const models = shownModels(answer.models);
  const { defaultModel } = provider;
  return answer.namesDefaultModel && defaultModel !== null && !answer.models.includes(defaultModel)
    ? { status: 'Degraded', detail: 'default model not listed', models }
    : { status: 'Healthy', detail: null, models };
};

/** Health of the model providers: a cache over checks, and what the circuit breaker knows. */
export const createModelHealth = ({ providers, settings, clock }: ModelHealthDeps) => {
  const checks = new Map<string, Check>();
  const running = new Map<string, Promise<void>>();
  let timer: Timer | null = null;

  const check = async (provider: ModelProvider): Promise<void> => {
    const { listModels, timeoutMs } = provider;
    if (listModels === undefined) return;
    const startedAt = performance.now();
    const limitMs = Math.min(longestCheckMs, timeoutMs ?? longestCheckMs);
    const answer = await listModels(AbortSignal.timeout(limitMs));
    const checkedAt = clock.now();
    checks.set(provider.name, {
      ...judged(provider, answer),
      latencyMs: Math.round(performance.now() - startedAt),
      checkedAt,
      freshUntil: checkedAt + settings.cacheTtlMs,
    });
  };

  /** Callers who ask for the same provider at once share one check. */
  const shared = (provider: ModelProvider): Promise<void> => {
    const current = running.get(provider.name);
    if (current !== undefined) return current;
    const started = check(provider).finally(() => running.delete(provider.name));
    running.set(provider.name, started);
    return started;
  };

  /** The last known health; nothing is asked. */
  const known = ({ name }: ModelProvider): ModelProviderHealth => {
    const checked = checks.get(name);
    const circuit = providers.protection.circuit(name);
    const status = checked?.status ?? 'Unknown';
    return {
      providerName: name,
      status:
        circuit === 'open' ? 'Unhealthy' : circuit === 'half_open' && status !== 'Unhealthy' ? 'Degraded' : status,
      circuitOpen: circuit === 'open',
      detail: circuit === 'open' ? 'circuit open' : (checked?.detail ?? null),
      latencyMs: checked?.latencyMs ?? null,
      checkedAt: isoTimeOrNull(checked?.checkedAt ?? null),
      models: [...(checked?.models ?? [])],
    };
  };

  return {
    known,
    /** Asks the provider where the last result is missing or stale, or where `refresh` is true. */
    async current(provider: ModelProvider, refresh: boolean): Promise<ModelProviderHealth> {
      const last = checks.get(provider.name);
      if (refresh || last === undefined || last.freshUntil <= clock.now()) await shared(provider);
      return known(provider);
    },
    /** True while a circuit is open, or while providers were checked and none of them is healthy. */
    degraded(): boolean {
      if (providers.protection.open().size > 0) return true;
      // A half-open circuit alone does not count as a check.
      const checked = providers.list().filter(({ name }) => (checks.get(name)?.status ?? 'Unknown') !== 'Unknown');
      return checked.length > 0 && checked.every((provider) => known(provider).status !== 'Healthy');
    },
    /** Asks all of them in the background, where that is switched on. */
    background: {
      start(mayAct: () => boolean): void {
        if (settings.backgroundIntervalMs === null) return;
        timer = clock.every(settings.backgroundIntervalMs, () =>
          mayAct() ? Promise.all(providers.list().map(shared)) : undefined,
        );
      },
      async stop() {
        timer?.stop();
      },
    },
  };
};

export type ModelHealth = ReturnType<typeof createModelHealth>;
