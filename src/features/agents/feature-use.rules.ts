import type { AgentContent } from './agents.content.ts';
import { error, type Finding } from './agents.findings.ts';

interface LaterFeature {
  readonly feature: string;
  readonly field: string;
  readonly isUsed: (content: AgentContent) => boolean;
}

/** Fields whose features this version does not have. A definition that uses one is refused, never half obeyed. */
const laterFeatures: readonly LaterFeature[] = [
  { feature: 'mcp-resources', field: 'mcpResourceUris', isUsed: (content) => content.mcpResourceUris.length > 0 },
];

export const featureFindings = (content: AgentContent): Finding[] =>
  laterFeatures
    .filter(({ isUsed }) => isUsed(content))
    .map(({ feature, field }) =>
      error('feature-not-available', field, `${field} needs the feature "${feature}", which this build does not have.`),
    );
