import type { Client } from '../../client/client.ts';
import { AcpError, invalidField } from '../../contract/errors.ts';
import type { InboundTriggerSaveRequest } from '../../features/triggers/triggers.schema.ts';
import type { Members, Surroundings } from './declaration-kind.ts';

const isAgent = async ({ client, agents }: Surroundings, name: string): Promise<boolean> => {
  if (agents.has(name)) return true;
  try {
    await client.agents.get({ params: { name } });
    return true;
  } catch (error) {
    if (error instanceof AcpError && error.code === 'agent-not-found') return false;
    throw error;
  }
};

const handlerKeys = async (client: Client): Promise<readonly string[]> => (await client.schedules.handlerKeys()).body;

/** By the rules that the service has for saving one; what a handler of a module makes of target and payload is not known here. */
export const foreseeSchedule = async (members: Members, surroundings: Surroundings): Promise<void> => {
  const { handlerKey, targetName, cron, timeZone = 'UTC' } = members;
  if (members['name'] === 'handler-keys') throw invalidField('name', 'is the name of another resource');
  const keys = await handlerKeys(surroundings.client);
  if (!keys.includes(String(handlerKey))) throw invalidField('handlerKey', `must be one of ${keys.join(', ')}`);
  const { firstOccurrence, readTimeZone } = await import('../../features/schedules/index.ts');
  const zone = readTimeZone(String(timeZone));
  if (typeof cron === 'string') firstOccurrence({ cron, timeZone: zone }, Date.now());
  if (handlerKey === 'acp.agent-batch' && !(await isAgent(surroundings, String(targetName))))
    throw invalidField('targetName', 'does not exist');
};

export const foreseeTrigger = async (members: Members, surroundings: Surroundings): Promise<void> => {
  const { checkedPath } = await import('../../features/triggers/index.ts');
  // It fits the schema of a trigger.
  const { targetKind, targetName } = members as unknown as InboundTriggerSaveRequest;
  checkedPath(members as unknown as InboundTriggerSaveRequest);
  if (targetKind === 'Workflow') throw invalidField('targetName', 'names no workflow: only agents can be started');
  if (!(await isAgent(surroundings, targetName))) throw invalidField('targetName', 'names no agent');
};
