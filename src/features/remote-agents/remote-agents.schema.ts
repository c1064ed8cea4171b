import Type, { type Static } from 'typebox';
import { closed, nullable, oneOf, Time } from '../../contract/schema.ts';

export const cardStates = ['Unknown', 'Connected', 'Unreachable', 'MissingCredential', 'Refused'] as const;
export type CardState = (typeof cardStates)[number];

export const RemoteAgentDescriptor = Type.Object(
  {
    name: Type.String({ description: 'Of one that an agent has in its definition: `{agent}:{name}`' }),
    toolName: Type.String({ description: 'The tool through which agents call it' }),
    agentName: nullable(Type.String({ description: 'The agent whose definition has it; null: the host has' })),
    cardUrl: Type.String(),
    authorizationConfigurationKey: nullable(Type.String({ description: 'Names the credential that it gets' })),
    description: nullable(Type.String({ description: 'What models are told of it' })),
    effect: oneOf(['Read', 'Write', 'Destructive', 'External']),
    requiresApproval: Type.Boolean(),
    pinning: oneOf(['Off', 'Warn', 'Block']),
    status: Type.Object({
      state: oneOf(cardStates),
      problem: nullable(Type.String({ description: 'What is wrong, in words of this service' })),
      agentName: nullable(Type.String({ description: 'What it calls itself' })),
      agentVersion: nullable(Type.String()),
      url: nullable(Type.String({ description: 'Where its card says that messages go' })),
      protocolVersion: nullable(Type.String()),
      skillCount: Type.Integer({ minimum: 0 }),
      checkedAt: nullable(Time),
      pin: oneOf(['None', 'Same', 'Changed'], {
        description: 'How its card compares with the one that was approved. None: none was',
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
    hash: Type.String({ description: 'Of the card as it is now' }),
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
        description:
          'Address that was looked at: 409 where it is another one by now. Required with a key that a definition names',
      }),
    ),
    authorizationConfigurationKey: Type.Optional(
      nullable(Type.String(), {
        description:
          'Key that was looked at: 409 where it is another one by now. Required where a definition names one',
      }),
    ),
    hash: Type.Optional(
      nullable(Type.String({ maxLength: 64 }), {
        description: 'Of the card that was looked at: 409 where it is another one by now',
      }),
    ),
  },
  { title: 'RemoteAgentApproveRequest' },
);
