import type { Client } from '../client/client.ts';
import { isSameDefinition } from '../client/definition-content.ts';
import type { DefinitionDocument } from '../contract/definition-document.ts';
import { AcpError } from '../contract/errors.ts';
import type { AgentDefinition, AgentDefinitionRequest, ValidationMessage } from '../features/agents/agents.schema.ts';

export type ApplyAction = 'created' | 'updated' | 'unchanged';

export interface Applied {
  readonly action: ApplyAction;
  /** Version that is current afterwards; of a dry run, the one there would be. */
  readonly version: number;
  readonly warnings: readonly ValidationMessage[];
}

/** Takes a document for a body; the service checks it, so nothing is relied on here. */
const bodyOf = ({ value }: DefinitionDocument): AgentDefinitionRequest => value as unknown as AgentDefinitionRequest;

const storedDefinition = async (client: Client, name: string): Promise<AgentDefinition | null> => {
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
    return { action: 'created', version: created.version, warnings: [] };
  }
  if (isSameDefinition(body, stored)) return { action: 'unchanged', version: stored.version, warnings: [] };
  const guarded = { expectedVersion: stored.version, ...body };
  const { body: saved } = await client.agents.save({ params: { name }, body: guarded });
  return { action: 'updated', version: saved.version, warnings: [] };
};

/**
 * What applying would do, without writing. A reference to an agent of the same batch counts as found, since it would be
 * there by then. Throws `definition-invalid` with every Error finding.
 */
export const previewDefinition = async (
  client: Client,
  document: DefinitionDocument,
  name: string,
  batch: ReadonlySet<string>,
): Promise<Applied> => {
  const body = bodyOf(document);
  const stored = await storedDefinition(client, name);
  const { body: report } = await client.agents.validate({ body });
  const named = [...(body.callableAgentNames ?? []), body.sharedInstructionsName];
  const comesLater = ({ code, path }: ValidationMessage): boolean => {
    if (code !== 'agent-not-found' && code !== 'shared-instructions-not-found') return false;
    const index = /^callableAgentNames\[(\d+)\]$/.exec(path ?? '')?.[1];
    const reference = index === undefined ? named.at(-1) : named[Number(index)];
    return typeof reference === 'string' && batch.has(reference);
  };
  const errors = report.messages.filter((message) => message.severity === 'Error' && !comesLater(message));
  if (errors.length > 0)
    throw new AcpError(
      'definition-invalid',
      `The definition of ${name} has ${errors.length === 1 ? 'an error' : `${errors.length} errors`}.`,
      {
        details: { errors: errors.map(({ path, message }) => ({ path: path ?? '', message })) },
      },
    );
  const warnings = report.messages.filter(({ severity }) => severity === 'Warning');
  if (stored === null) return { action: 'created', version: 1, warnings };
  if (isSameDefinition(body, stored)) return { action: 'unchanged', version: stored.version, warnings };
  return { action: 'updated', version: stored.version + 1, warnings };
};
