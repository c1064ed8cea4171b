import { type AnswerLimits, defaultAnswerLimits } from './answer-limits.ts';
import type { ModelProviders } from './model-provider.ts';
import type { ModelProviderSettings } from './model-settings.ts';
import { networkProvider } from './network-provider.ts';
import { createOwnedProviders } from './owned-providers.ts';
import {
  createCallProtection,
  defaultProtection,
  type ProtectionObserver,
  type ProtectionSettings,
} from './protection/call-protection.ts';
import type { ForeignErrorLog } from './provider-calls.ts';
import { scriptedProvider } from './scripted/scripted.provider.ts';
import type { DeploymentCredential } from './surfaces/azure.surface.ts';
import { configuredSurfaces, presentSections } from './surfaces/configured.ts';
import { createConnectionPool } from './transport/connection-pool.ts';

export type { AnswerLimits } from './answer-limits.ts';
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
  OwnCredential,
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
  /** Default: those that the configuration has by default. */
  readonly answerLimits?: AnswerLimits;
  /** `Service:Egress:AllowPrivateNetworkTargets`: whether a tenant's own endpoint may be anywhere. */
  readonly allowPrivateEndpoints?: boolean;
  /** Called when a tenant's own endpoint is refused as it is called. */
  readonly onEndpointRefusal?: () => void;
  readonly now?: () => number;
}

/**
 * The providers that have a configuration section, by name. Nothing is sent and no vendor library is loaded before
 * the first call; scripts are read and checked now. Throws ScriptError, or Error for a name that is used twice.
 */
export const createModelProviders = (settings: ModelProviderSettings, deps: ModelProvidersDeps): ModelProviders => {
  const pool = createConnectionPool();
  const network = { pool, log: deps.log, limits: deps.answerLimits ?? defaultAnswerLimits };
  const owned = createOwnedProviders(settings, { ...deps, limits: network.limits });
  const providers = [
    ...configuredSurfaces(settings, deps.deploymentCredential ?? null).map((surface) =>
      networkProvider(surface, network),
    ),
    ...presentSections(settings.Scripted).map(([name, section]) => scriptedProvider(name, section)),
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
    takesCredential: owned.takes,
    withCredential: owned.provider,
    async close() {
      await owned.close();
      await pool.close();
    },
  };
};
