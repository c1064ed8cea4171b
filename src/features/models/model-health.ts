import type { Clock, Timer } from '../../core/clock.ts';
import { isoTimeOrNull } from '../../core/iso-time.ts';
import type { Logger } from '../../core/logger.ts';
import {
  type ModelListAnswer,
  type ModelProvider,
  type ModelProviders,
  shownModels,
} from '../../providers/models/index.ts';
import type { HealthResult, HealthResults } from './health-results.ts';
import type { ModelProviderHealth } from './models.schema.ts';

export interface ModelHealthSettings {
  readonly cacheTtlMs: number;
  /** Null: nobody is asked but on demand. */
  readonly backgroundIntervalMs: number | null;
}

export interface ModelHealthDeps {
  readonly providers: Pick<ModelProviders, 'list' | 'get' | 'protection'>;
  readonly settings: ModelHealthSettings;
  readonly clock: Pick<Clock, 'every'>;
  readonly results: HealthResults;
  /** The time of the store, by which processes compare what they met. */
  readonly now: () => number;
  readonly log: Pick<Logger, 'warn'>;
}

const unread = 'the last known health could not be read';
// The list of models is a small answer; a provider that takes longer for it is unhealthy.
const longestCheckMs = 5000;

const judged = (
  provider: ModelProvider,
  answer: ModelListAnswer,
): Pick<HealthResult, 'status' | 'detail' | 'models'> => {
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

/** Health of the model providers: the last results of checks, and what the circuit breaker of this process says. */
export const createModelHealth = ({ providers, settings, clock, results, now, log }: ModelHealthDeps) => {
  const running = new Map<string, Promise<void>>();
  let timer: Timer | null = null;

  const check = async (provider: ModelProvider): Promise<void> => {
    const { listModels, timeoutMs } = provider;
    if (listModels === undefined) return;
    const [askedAt, startedAt] = [now(), performance.now()];
    const limitMs = Math.min(longestCheckMs, timeoutMs ?? longestCheckMs);
    const answer = await listModels(AbortSignal.timeout(limitMs));
    await results.put({
      ...judged(provider, answer),
      providerName: provider.name,
      latencyMs: Math.round(performance.now() - startedAt),
      askedAt,
      checkedAt: now(),
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
    const checked = results.of(name);
    const circuit = providers.protection.circuit(name);
    const status = checked?.status ?? 'Unknown';
    const detail = results.isUnread() ? unread : (checked?.detail ?? null);
    return {
      providerName: name,
      status:
        circuit === 'open' ? 'Unhealthy' : circuit === 'half_open' && status !== 'Unhealthy' ? 'Degraded' : status,
      circuitOpen: circuit === 'open',
      detail: circuit === 'open' ? 'circuit open' : detail,
      latencyMs: checked?.latencyMs ?? null,
      checkedAt: isoTimeOrNull(checked?.checkedAt ?? null),
      models: [...(checked?.models ?? [])],
    };
  };

  const checkLogged = (provider: ModelProvider): Promise<void> =>
    shared(provider).catch((error: unknown) => {
      log.warn({ error, provider: provider.name }, 'The health of a model provider was checked and could not be kept');
    });

  return {
    known,
    /** Before what tells of all of them without asking any; never rejects. */
    upToDate: results.upToDate,
    /** Asks the provider where the last result is missing or stale, or where `refresh` is true. */
    async current(provider: ModelProvider, refresh: boolean): Promise<ModelProviderHealth> {
      await results.refresh();
      const last = results.of(provider.name);
      if (refresh || last === undefined || last.checkedAt + settings.cacheTtlMs <= now()) await shared(provider);
      return known(provider);
    },
    /**
     * True while a circuit is open, while providers were checked and none of them is healthy, and while it cannot be read
     * what others found.
     */
    degraded(): boolean {
      if (providers.protection.open().size > 0 || results.isUnread()) return true;
      // A half-open circuit alone does not count as a check.
      const checked = providers.list().filter(({ name }) => (results.of(name)?.status ?? 'Unknown') !== 'Unknown');
      return checked.length > 0 && checked.every((provider) => known(provider).status !== 'Healthy');
    },
    /** Asks all of them in the background, where that is switched on. */
    background: {
      start(mayAct: () => boolean): void {
        if (settings.backgroundIntervalMs === null) return;
        timer = clock.every(settings.backgroundIntervalMs, () =>
          mayAct() ? Promise.all(providers.list().map(checkLogged)) : undefined,
        );
      },
      async stop() {
        timer?.stop();
      },
    },
  };
};

export type ModelHealth = ReturnType<typeof createModelHealth>;
