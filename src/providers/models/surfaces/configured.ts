import type { ModelProviderSettings } from '../model-settings.ts';
import { anthropicSurface } from './anthropic.surface.ts';
import { azureSurface, type DeploymentCredential } from './azure.surface.ts';
import { googleSurface } from './google.surface.ts';
import { compatibleSurface, openAIChatSurface, responsesSurface } from './openai.surface.ts';
import type { Surface } from './surface.ts';

/** The sections of a map that are there. */
export const presentSections = <T>(
  section: Readonly<Record<string, T | null | undefined>> | null | undefined,
): [string, T][] => {
  const entries = Object.entries(section ?? {});
  return entries.filter((entry): entry is [string, T] => entry[1] !== null && entry[1] !== undefined);
};

/** The wire APIs of all providers that have a section. */
export const configuredSurfaces = (
  settings: ModelProviderSettings,
  credential: DeploymentCredential | null,
): Surface[] => {
  const surfaces: Surface[] = [];
  if (settings.OpenAI) {
    surfaces.push(openAIChatSurface(settings.OpenAI));
    surfaces.push(responsesSurface('openai-responses', settings.OpenAI, 'openai-responses'));
  }
  for (const [name, section] of presentSections(settings.Compatible)) {
    surfaces.push(compatibleSurface(name, section));
    if (section.EnableResponsesSurface === true)
      surfaces.push(responsesSurface(`${name}-responses`, section, 'compatible'));
  }
  if (settings.Anthropic) surfaces.push(anthropicSurface(settings.Anthropic));
  if (settings.Google) surfaces.push(googleSurface(settings.Google));
  if (settings.AzureOpenAI) surfaces.push(azureSurface(settings.AzureOpenAI, credential));
  return surfaces;
};
