import { isoTime } from '../../core/iso-time.ts';
import type { KnownAgent } from './agents.catalog.ts';
import type { AgentDefinition, AgentDescriptor } from './agents.schema.ts';
import type { StoredAgent } from './agents.store.ts';

/** A stored version as callers see it. */
export const toDefinition = (agent: StoredAgent): AgentDefinition => ({
  ...agent.content,
  origin: 'database',
  version: agent.version,
  tenantId: agent.tenantId,
  updatedAt: isoTime(agent.updatedAt),
  updatedBy: agent.updatedBy,
  restoredFrom: agent.restoredFrom,
});

/** The entry of the catalog. */
export const toDescriptor = (agent: KnownAgent): AgentDescriptor => {
  const { content } = agent;
  return {
    name: content.name,
    displayName: content.displayName,
    description: content.description,
    origin: agent.origin,
    version: agent.version,
    model: { provider: content.model.provider, model: content.model.model },
    toolNames: content.toolNames,
    skillNames: content.skillNames,
    callableAgentNames: content.callableAgentNames,
    usesHarness: content.harness !== null,
    updatedAt: agent.origin === 'code' ? null : isoTime(agent.updatedAt),
  };
};
