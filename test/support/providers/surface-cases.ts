import {
  type AnswerLimits,
  createModelProviders,
  type ModelProvider,
  type ModelProviders,
} from '../../../src/providers/models/index.ts';
import type { ModelProviderSettings } from '../../../src/providers/models/model-settings.ts';
import type { WireName } from './scenario.ts';
import { type ProviderSimulator, type SimulatorOptions, startProviderSimulator } from './simulator.ts';

export interface SurfaceCase {
  /** Name of the provider, as a binding has it. */
  readonly provider: string;
  readonly wire: WireName;
  readonly model: string;
  /** Text that the credential travels in. */
  readonly credentialHeader: readonly [name: string, value: string] | null;
  /** Whether a streamed answer names its model. */
  readonly namesModel: boolean;
  readonly settings: (url: string, timeoutMs: number | null) => ModelProviderSettings;
}

const key = 'sk-test-0123456789';

/** The six surfaces that the same facts are proved on. */
export const surfaceCases: readonly SurfaceCase[] = [
  {
    provider: 'openai',
    wire: 'chat',
    model: 'gpt-4.1',
    credentialHeader: ['authorization', `Bearer ${key}`],
    namesModel: true,
    settings: (url, timeoutMs) => ({ OpenAI: { ApiKey: key, Endpoint: `${url}/v1`, Timeout: timeoutMs } }),
  },
  {
    provider: 'openai-responses',
    wire: 'responses',
    model: 'gpt-5-mini',
    credentialHeader: ['authorization', `Bearer ${key}`],
    namesModel: true,
    settings: (url, timeoutMs) => ({ OpenAI: { ApiKey: key, Endpoint: `${url}/v1`, Timeout: timeoutMs } }),
  },
  {
    provider: 'local',
    wire: 'chat',
    model: 'llama3.3:70b',
    credentialHeader: null,
    namesModel: true,
    settings: (url, timeoutMs) => ({ Compatible: { local: { Endpoint: `${url}/v1`, Timeout: timeoutMs } } }),
  },
  {
    provider: 'anthropic',
    wire: 'anthropic',
    model: 'claude-sonnet-4-5',
    credentialHeader: ['x-api-key', key],
    namesModel: true,
    settings: (url, timeoutMs) => ({ Anthropic: { ApiKey: key, Endpoint: url, Timeout: timeoutMs, MaxRetries: 0 } }),
  },
  {
    provider: 'google',
    wire: 'gemini',
    model: 'gemini-2.5-flash',
    credentialHeader: ['x-goog-api-key', key],
    namesModel: false,
    settings: (url, timeoutMs) => ({ Google: { ApiKey: key, Endpoint: url, Timeout: timeoutMs } }),
  },
  {
    provider: 'azure-openai',
    wire: 'azure',
    model: 'team-chat',
    credentialHeader: ['api-key', key],
    namesModel: true,
    settings: (url, timeoutMs) => ({ AzureOpenAI: { ApiKey: key, Endpoint: url, Timeout: timeoutMs } }),
  },
];

export interface LoggedError {
  readonly requestId: string;
  readonly provider: string;
  readonly error: unknown;
}

export interface Bench {
  readonly simulator: ProviderSimulator;
  readonly providers: ModelProviders;
  readonly log: LoggedError[];
  provider(name: string): ModelProvider;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface BenchOptions extends SimulatorOptions {
  readonly settings: (url: string) => ModelProviderSettings;
  readonly answerLimits?: AnswerLimits;
}

/** A simulator and the providers that are set up to call it; both are closed at the end of the block. */
export const openBench = async (options: BenchOptions): Promise<Bench> => {
  const simulator = await startProviderSimulator(options);
  const log: LoggedError[] = [];
  const providers = createModelProviders(options.settings(simulator.url), {
    log: (entry) => log.push(entry),
    ...(options.answerLimits === undefined ? {} : { answerLimits: options.answerLimits }),
  });
  return {
    simulator,
    providers,
    log,
    provider(name) {
      const provider = providers.get(name);
      if (provider === undefined) throw new Error(`No provider ${name}`);
      return provider;
    },
    async [Symbol.asyncDispose]() {
      await providers.close();
      await simulator.close();
    },
  };
};

export const openSurface = (surface: SurfaceCase, timeoutMs: number | null = null): Promise<Bench> =>
  openBench({ settings: (url) => surface.settings(url, timeoutMs) });
