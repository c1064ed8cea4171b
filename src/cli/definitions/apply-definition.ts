import type { Client } from '../../client/client.ts';
import { isSameDefinition } from '../../client/definition-content.ts';
import type { DefinitionDocument } from '../../contract/definition-document.ts';
import { AcpError } from '../../contract/errors.ts';
import type { AgentDefinition, AgentDefinitionRequest } from '../../features/agents/agents.schema.ts';

export type ApplyAction = 'created' | 'updated' | 'unchanged';

export interface Applied {
  readonly action: ApplyAction;
  /** Version that is current afterwards; of a dry run, the one there would be. */
  readonly version: number;
}

/** Words of declarations are written in any case. */
const isAgentKind = (kind: unknown): boolean => typeof kind === 'string' && kind.toLowerCase() === 'agent';

/**
 * Takes a document for a body; the service checks it, so nothing is relied on here. That it is an agent may stand in front,
 * as in declarations of every kind.
 */
export const bodyOf = ({ value }: Pick<DefinitionDocument, 'value'>): AgentDefinitionRequest => {
  const { kind, ...body } = value;
  return (isAgentKind(kind) ? body : value) as unknown as AgentDefinitionRequest;
};

/** The stored agent of a name, or null. Throws for one that is defined in code. */
export const storedDefinition = async (client: Client, name: string): Promise<AgentDefinition | null> => {
  try {
    const { body } = await client.agents.get({ params: { name } });
    if (body.definition === null)
      throw new AcpError('agent-code-defined', `${name} is defined in code and cannot be changed here.`);
    return body.definition;
  } catch (error) {
    if (error instanceof AcpError && error.code === 'agent-not-found') return null;
    throw error;
  }
};

/** Writes one definition when it differs from the stored one. `expectedVersion` keeps a change made meanwhile. */
export const applyDefinition = async (client: Client, document: DefinitionDocument, name: string): Promise<Applied> => {
  const body = bodyOf(document);
  const stored = await storedDefinition(client, name);
  if (stored === null) {
    const { body: created } = await client.agents.create({ body });
    return { action: 'created', version: created.version };
  }
  if (isSameDefinition(body, stored)) return { action: 'unchanged', version: stored.version };
  const guarded = { expectedVersion: stored.version, ...body };
  const { body: saved } = await client.agents.save({ params: { name }, body: guarded });
  return { action: 'updated', version: saved.version };
};
