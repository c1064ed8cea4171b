import { directStream } from './chat-completions/direct.stream.ts';
import { libraryAnswer, libraryStream } from './library-calls.ts';
import { fetchModelList, type ModelListAnswer } from './model-list.ts';
import type { ModelProvider, ModelProviders } from './model-provider.ts';
import type { ModelProviderSettings } from './model-settings.ts';
import {
  createCallProtection,
  defaultProtection,
  type ProtectionObserver,
  type ProtectionSettings,
} from './protection/call-protection.ts';
import { type ForeignErrorLog, type NetworkDeps, ProviderCalls } from './provider-calls.ts';
import { scriptedProvider } from './scripted/scripted.provider.ts';
import { anthropicSurface } from './surfaces/anthropic.surface.ts';
import { azureSurface, type DeploymentCredential } from './surfaces/azure.surface.ts';
import { googleSurface } from './surfaces/google.surface.ts';
import { compatibleSurface, openAIChatSurface, responsesSurface } from './surfaces/openai.surface.ts';
import type { Surface } from './surfaces/surface.ts';
import { createConnectionPool } from './transport/connection-pool.ts';

export { ModelCallError, type ModelErrorClass, type ModelErrorType } from './model-error.ts';
export { type ModelListAnswer, shownModels } from './model-list.ts';
export type {
  ModelCall,
  ModelCatalogEntry,
  ModelFinish,
  ModelFinishReason,
  ModelHostedCall,
  ModelHostedResult,
  ModelJson,
  ModelPart,
  ModelPrompt,
  ModelProvider,
  ModelProviderKind,
  ModelProviders,
  ModelResponseFormat,
  ModelTool,
  ModelToolCall,
  ModelUsage,
} from './model-provider.ts';
export type { ModelEntrySettings, ModelProviderSettings } from './model-settings.ts';
export { isOwnedSetting, ownedSettings } from './owned-settings.ts';
export type {
  CallPermit,
  CallProtection,
  ProtectionObserver,
  ProtectionSettings,
} from './protection/call-protection.ts';
export type { CircuitState } from './protection/circuit-breaker.ts';
export type { ForeignErrorLog } from './provider-calls.ts';
export { ScriptError, type ScriptProblem } from './scripted/script-error.ts';
export { loadScript } from './scripted/script-loader.ts';
export type { DeploymentCredential } from './surfaces/azure.surface.ts';

export interface ModelProvidersDeps {
  readonly log: ForeignErrorLog;
  /** A module's token function for the deployment-based provider; with it that provider's `ApiKey` is not used. */
  readonly deploymentCredential?: DeploymentCredential | null;
  /** Default: a circuit breaker as the configuration has it by default, and no limit of calls. */
  readonly protection?: ProtectionSettings;
  readonly observer?: ProtectionObserver;
  readonly now?: () => number;
}

function present<T>(section: Readonly<Record<string, T | null | undefined>> | null | undefined): [string, T][] {
  const entries = Object.entries(section ?? {});
  return entries.filter((entry): entry is [string, T] => entry[1] !== null && entry[1] !== undefined);
}

function surfaces(settings: ModelProviderSettings, credential: DeploymentCredential | null): Surface[] {
  const found: Surface[] = [];
  if (settings.OpenAI) {
    found.push(openAIChatSurface(settings.OpenAI));
    found.push(responsesSurface('openai-responses', settings.OpenAI, 'openai-responses'));
  }
  for (const [name, section] of present(settings.Compatible)) {
    found.push(compatibleSurface(name, section));
    if (section.EnableResponsesSurface === true) {
      found.push(responsesSurface(`${name}-responses`, section, 'compatible'));
    }
  }
  if (settings.Anthropic) {
    found.push(anthropicSurface(settings.Anthropic));
  }
  if (settings.Google) {
    found.push(googleSurface(settings.Google));
  }
  if (settings.AzureOpenAI) {
    found.push(azureSurface(settings.AzureOpenAI, credential));
  }
  return found;
}

async function listModels(surface: Surface, pool: NetworkDeps['pool'], signal: AbortSignal): Promise<ModelListAnswer> {
  // Without a credential nothing is asked: the answer is known.
  if (!surface.hasCredential) return { kind: 'failed', httpStatus: null, errorClass: 'ProviderError' };
  return fetchModelList(pool, surface.modelList, signal);
}

/** A provider that is called over HTTP. Chat completions have a decoder of their own, the rest is the vendor library's. */
function networkProvider(surface: Surface, deps: NetworkDeps): ModelProvider {
  const calls = new ProviderCalls(surface, deps);
  return {
    name: surface.name,
    kind: surface.kind,
    displayName: surface.displayName,
    defaultModel: surface.defaultModel,
    catalog: surface.catalog,
    ...(surface.webSearch !== undefined && { searchesWeb: surface.webSearch.has }),
    timeoutMs: surface.timeoutMs,
    listModels: (signal) => listModels(surface, deps.pool, signal),
    stream: (call) => (surface.stream === 'chat-completions' ? directStream(calls, call) : libraryStream(calls, call)),
    generate: (call) => libraryAnswer(calls, call),
  };
}

/**
 * The providers that have a configuration section, by name. Nothing is sent and no vendor library is loaded before
 * the first call; scripts are read and checked now. Throws ScriptError, or Error for a name that is used twice.
 */
export function createModelProviders(settings: ModelProviderSettings, deps: ModelProvidersDeps): ModelProviders {
  const pool = createConnectionPool();
  const providers = [
    ...surfaces(settings, deps.deploymentCredential ?? null).map((surface) =>
      networkProvider(surface, { pool, log: deps.log }),
    ),
    ...present(settings.Scripted).map(([name, section]) => scriptedProvider(name, section)),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
  const byName = new Map(providers.map((provider) => [provider.name, provider]));
  if (byName.size < providers.length) {
    const twice = providers.find((provider) => byName.get(provider.name) !== provider);
    throw new Error(`Two model providers have the name "${twice?.name}"`);
  }
  return {
    list: () => providers,
    protection: createCallProtection(deps.protection ?? defaultProtection, deps.now ?? Date.now, deps.observer ?? null),
    get: (name) => byName.get(name),
    close: () => pool.close(),
  };
}
