import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, Time } from '../../contract/schema.ts';

export const cardStates = ['Unknown', 'Connected', 'Unreachable', 'MissingCredential', 'Refused'] as const;
export type CardState = (typeof cardStates)[number];

export const RemoteAgentDescriptor = Type.Object(
  {
    name: Type.String({ description: 'For a remote agent in the definition of an agent: `{agent}:{name}`' }),
    toolName: Type.String({ description: 'Tool with which agents call it' }),
    agentName: nullable(
      Type.String({ description: 'Agent whose definition contains it; null: configured by the host' }),
    ),
    cardUrl: Type.String(),
    authorizationConfigurationKey: nullable(
      Type.String({ description: 'Configuration key of the credential that is sent to it' }),
    ),
    description: nullable(Type.String({ description: 'Description for models' })),
    effect: oneOf(['Read', 'Write', 'Destructive', 'External']),
    requiresApproval: Type.Boolean(),
    pinning: oneOf(['Off', 'Warn', 'Block']),
    status: Type.Object({
      state: oneOf(cardStates),
      problem: nullable(Type.String({ description: 'Problem, as described by this service' })),
      agentName: nullable(Type.String({ description: 'Name that its card states' })),
      agentVersion: nullable(Type.String()),
      url: nullable(Type.String({ description: 'Address for messages that its card states' })),
      protocolVersion: nullable(Type.String()),
      skillCount: Type.Integer({ minimum: 0 }),
      checkedAt: nullable(Time),
      pin: oneOf(['None', 'Same', 'Changed'], {
        description: 'Comparison of its card with the approved one. None: no card was approved',
      }),
    }),
  },
  { title: 'RemoteAgentDescriptor' },
);
export type RemoteAgentDescriptor = Static<typeof RemoteAgentDescriptor>;

export const RemoteAgentPinReport = Type.Object(
  {
    pinned: Type.Boolean({ description: 'Whether a card was approved' }),
    pinnedAt: nullable(Time),
    pinnedBy: nullable(Type.String()),
    hash: Type.String({ description: 'Hash of the current card' }),
    pinnedHash: nullable(Type.String()),
    changes: Type.Array(
      Type.Object({
        path: Type.String({ description: 'JSON Pointer into the card' }),
        change: oneOf(['Added', 'Removed', 'Changed']),
        before: nullable(Type.String({ description: 'JSON' })),
        after: nullable(Type.String({ description: 'JSON' })),
      }),
    ),
  },
  { title: 'RemoteAgentPinReport' },
);
export type RemoteAgentPinReport = Static<typeof RemoteAgentPinReport>;

export const RemoteAgentApproveRequest = closed(
  {
    cardUrl: Type.Optional(
      nullable(Type.String(), {
        description: 'Address that was reviewed; 409 if it has changed. Required with a key that a definition names',
      }),
    ),
    authorizationConfigurationKey: Type.Optional(
      nullable(Type.String(), {
        description: 'Key that was reviewed; 409 if it has changed. Required if a definition names one',
      }),
    ),
    hash: Type.Optional(
      nullable(Type.String({ maxLength: 64 }), {
        description: 'Hash of the card that was reviewed; 409 if it has changed',
      }),
    ),
  },
  { title: 'RemoteAgentApproveRequest' },
);
