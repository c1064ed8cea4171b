import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { RemoteAgentApproveRequest, RemoteAgentDescriptor, RemoteAgentPinReport } from './remote-agents.schema.ts';

const read = { tag: 'A2A', role: 'Reader', scope: 'PlatformRead', method: 'GET' } as const;
const AgentName = Type.Object({ name: Type.String() });

const write = { tag: 'A2A', role: 'Admin', scope: 'PlatformAdmin' } as const;

export const remoteAgentOperations = defineOperations({
  list: {
    ...read,
    path: '/api/remote-agents',
    summary: 'List the remote agents that agents can call, by name',
    description:
      'They are those of `Host:RemoteAgents` and those of the definitions of agents. Cards that were not looked at in the last five minutes are asked for now.',
    responses: { 200: Type.Array(RemoteAgentDescriptor) },
    errors: [],
    cli: {
      command: 'a2a list',
      columns: [
        'name',
        'cardUrl',
        'authorizationConfigurationKey',
        'status.state',
        'status.protocolVersion',
        'status.pin',
        'status.problem',
      ],
    },
  },
  pin: {
    ...read,
    path: '/api/remote-agents/{name}/pin',
    summary: 'Show what of the card of a remote agent is not as it was approved',
    description:
      'The card is asked for now, and each value that it has and the approved one has not, or the other way round, is listed by its place.',
    params: AgentName,
    responses: { 200: RemoteAgentPinReport },
    errors: ['not-found', 'remote-agent-failed'],
    cli: { command: 'a2a diff' },
  },
  approve: {
    ...write,
    method: 'POST',
    path: '/api/remote-agents/{name}/approve',
    summary: 'Approve the card of a remote agent as it is now',
    description:
      'The card is asked for now. From then on a change of it is told of, or with the pinning Block the agent is not called before it is approved again.',
    params: AgentName,
    body: Type.Optional(RemoteAgentApproveRequest),
    responses: { 200: RemoteAgentDescriptor },
    errors: ['not-found', 'validation-failed', 'remote-card-changed', 'remote-agent-failed'],
    audit: { action: 'remote-agent.approve', entity: 'remote-agent', mode: 'noted' },
    cli: { command: 'a2a approve' },
  },
  withdraw: {
    ...write,
    method: 'DELETE',
    path: '/api/remote-agents/{name}/pin',
    summary: 'Take back what was approved of a remote agent',
    description:
      'Every approval under the name ends, whatever the address and the key, also those of an agent that no definition has any more. A credential that waits for an approval is sent no more, and with the pinning Block the agent is not called; a call that is under way goes on.',
    params: AgentName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'remote-agent.withdraw', entity: 'remote-agent', mode: 'noted' },
    cli: { command: 'a2a withdraw', done: 'Removed what was approved of {name}.' },
  },
});
