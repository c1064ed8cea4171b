import { CredentialError } from '../call-failure.ts';
import { azureFinish } from '../finish-reasons.ts';
import type { VendorSettings } from '../model-settings.ts';
import { chatUsage } from '../model-usage.ts';
import { openAIExtras } from './openai-options.ts';
import { plainList, type Surface, surfaceBase, trimmedUrl } from './surface.ts';

/** Gives a bearer token for an audience (null: the vendor's default); used instead of an API key. */
export type DeploymentCredential = (audience: string | null) => Promise<string>;

interface AzureAddress {
  readonly baseURL: string;
  /** Null: the v1 API, which has no dated versions and takes the deployment as the model. */
  readonly apiVersion: string | null;
}

/**
 * `https://name.openai.azure.com` speaks the v1 API at `/openai/v1/chat/completions`. An `api-version` in the
 * endpoint's query asks for the dated API at `/openai/deployments/{deployment}/chat/completions` instead.
 */
export const azureAddress = (endpoint: string): AzureAddress => {
  const url = new URL(endpoint);
  const apiVersion = url.searchParams.get('api-version');
  const path = trimmedUrl(url.pathname).replace(/\/openai(\/v1)?$/i, '');
  return { baseURL: `${url.origin}${path}/openai${apiVersion === null ? '/v1' : ''}`, apiVersion };
};

const listUrl = (endpoint: string): string => {
  const { baseURL, apiVersion } = azureAddress(endpoint);
  return `${baseURL}/models${apiVersion === null ? '' : `?api-version=${encodeURIComponent(apiVersion)}`}`;
};

/** Deployments of the vendor's models in a customer's own account; a binding's model is a deployment name. */
export const azureSurface = (
  settings: VendorSettings<'AzureOpenAI'>,
  credential: DeploymentCredential | null,
): Surface => {
  const shared = surfaceBase('azure-openai', settings);
  const apiKey = credential === null ? shared.apiKey : null;
  let lastToken: string | null = null;
  const bearerToken = async (give: DeploymentCredential): Promise<string> => {
    try {
      lastToken = await give(settings.Audience ?? null);
      return lastToken;
    } catch (error) {
      throw new CredentialError('The credential function failed', { cause: error });
    }
  };
  const open = async (fetch: typeof globalThis.fetch) => {
    const { createAzure } = await import('@ai-sdk/azure');
    const { baseURL, apiVersion } = azureAddress(settings.Endpoint ?? '');
    return createAzure({
      baseURL,
      fetch,
      ...(apiVersion !== null && { apiVersion, useDeploymentBasedUrls: true }),
      ...(credential === null ? { apiKey: apiKey ?? '' } : { tokenProvider: () => bearerToken(credential) }),
    });
  };
  return {
    ...shared,
    kind: 'azure',
    defaultModel: settings.DefaultDeployment ?? null,
    // A provider that quotes the token it refuses is not to bring it into a log line either.
    get apiKey() {
      return apiKey ?? lastToken;
    },
    hasCredential: apiKey !== null || credential !== null,
    decoder: 'chat-completions',
    finishReasons: azureFinish,
    modelInPath: true,
    modelList: {
      url: listUrl(settings.Endpoint ?? ''),
      headers: async () =>
        credential === null
          ? { 'api-key': apiKey ?? '' }
          : { authorization: `Bearer ${await bearerToken(credential)}` },
      ...plainList,
      // The list has the models that can be deployed; deployments have names of their own.
      namesDefaultModel: false,
    },
    async load(fetch) {
      const library = await open(fetch);
      return (deployment) => library.chat(deployment);
    },
    async loadEmbedder(fetch) {
      const library = await open(fetch);
      return (deployment) => library.embeddingModel(deployment);
    },
    extras: openAIExtras({ namespace: 'openai', responses: false, catalog: shared.catalog, parallelSwitch: true }),
    usage: chatUsage,
  };
};
