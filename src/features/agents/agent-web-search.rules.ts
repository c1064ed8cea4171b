import type { ModelProviders } from '../../providers/models/model-provider.ts';
import { webSearchTool } from '../../providers/models/web-search-parts.ts';
import type { AgentContent } from './agents.content.ts';
import { error, type Finding, quoted } from './agents.findings.ts';

/** Nobody can be asked about a search that the provider makes, so it does not go with asking about every call. */
export const offersWebSearch = ({ harness }: Pick<AgentContent, 'harness'>): boolean =>
  harness !== null && !harness.disableWebSearch && !harness.disableToolAutoApproval;

/** A tool of the agent that has the name of its provider's own search: the model could not tell them apart. */
export const webSearchFindings = (content: AgentContent, providers: Pick<ModelProviders, 'get'>): Finding[] => {
  if (!offersWebSearch(content)) return [];
  const searching = [content.model, ...content.model.fallbacks].find(
    ({ provider, model }) => providers.get(provider)?.searchesWeb?.(model) === true,
  );
  if (searching === undefined) return [];
  const index = content.toolNames.indexOf(webSearchTool);
  if (index === -1) return [];
  const message = `The web search of ${quoted(searching.provider)} would be a second tool ${webSearchTool} of the model; harness.disableWebSearch takes it away.`;
  return [error('tool-name-collision', `toolNames[${index}]`, message)];
};
