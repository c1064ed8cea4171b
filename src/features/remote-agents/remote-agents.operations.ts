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
      'Remote agents come from `Host:RemoteAgents` and from agent definitions. Cards that were not fetched in the last five minutes are fetched now.',
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
    summary: 'Show how the card of a remote agent differs from the approved one',
    description: 'The card is fetched now, and each value that only one of the two cards has is listed with its path.',
    params: AgentName,
    responses: { 200: RemoteAgentPinReport },
    errors: ['not-found', 'remote-agent-failed'],
    cli: { command: 'a2a diff' },
  },
  approve: {
    ...write,
    method: 'POST',
    path: '/api/remote-agents/{name}/approve',
    summary: 'Approve the current card of a remote agent',
    description:
      'The card is fetched now. A later change of the card is reported or, with pinning Block, the agent is not called until it is approved again.',
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
    summary: 'Withdraw the approval of a remote agent',
    description:
      'All approvals of the name end, for every address and key, including those of an agent that no definition contains any more. A credential that needs an approval is no longer sent, and with pinning Block the agent is no longer called; calls in progress continue.',
    params: AgentName,
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'remote-agent.withdraw', entity: 'remote-agent', mode: 'noted' },
    cli: { command: 'a2a withdraw', done: 'Removed what was approved of {name}.' },
  },
});
