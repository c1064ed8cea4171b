import Type, { type Static } from 'typebox';
import { flowSettings } from '../../contract/flow-settings.ts';
import { closed, Labels, namePattern, nullable, oneOf, Time, Uuid } from '../../contract/schema.ts';

const targetKinds = ['Agent', 'Workflow'] as const;
const payloadModes = ['WholeBody', 'Path'] as const;
/** Ways in which senders sign, as their own documentation writes their names. */
const schemes = ['standard', 'github', 'stripe', 'slack'] as const;

export const TriggerName = Type.Object({ name: Type.String() });
export const NewTriggerName = Type.Object({ name: Type.String({ pattern: namePattern }) });

export const maxPathNames = 16;

const TriggerFlow = flowSettings('the body of a call, such as /data/customer', { additionalProperties: false });

export const InboundTriggerSaveRequest = closed(
  {
    targetKind: Type.Optional(oneOf(targetKinds, { description: 'Default Agent' })),
    targetName: Type.String({ maxLength: 128, description: 'Name of the target that a call starts; it must exist' }),
    scheme: Type.Optional(
      oneOf(schemes, {
        description: 'Signature scheme of the sender; default standard, which is Standard Webhooks',
      }),
    ),
    secretConfigurationKey: Type.String({
      maxLength: 256,
      description: 'Configuration key whose value is the secret, such as `Service:TriggerSecrets:crm`',
    }),
    payloadMode: Type.Optional(
      oneOf(payloadModes, { description: 'Part of the body that becomes the message; default WholeBody' }),
    ),
    payloadPath: Type.Optional(
      nullable(
        Type.String({
          maxLength: 256,
          description: `Path mode only: 1 to ${maxPathNames} property names, joined by dots`,
        }),
      ),
    ),
    flow: Type.Optional(nullable(TriggerFlow, { description: 'Flow control of the runs that calls queue' })),
    enabled: Type.Optional(Type.Boolean({ default: true, description: 'Default true' })),
    labels: Type.Optional(Labels),
  },
  { title: 'InboundTriggerSaveRequest' },
);
export type InboundTriggerSaveRequest = Static<typeof InboundTriggerSaveRequest>;

export const InboundTrigger = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    name: Type.String(),
    targetKind: oneOf(targetKinds),
    targetName: Type.String(),
    scheme: oneOf(schemes),
    secretConfigurationKey: Type.String(),
    resolved: Type.Boolean({ description: 'Whether the configuration key has a value now' }),
    payloadMode: oneOf(payloadModes),
    payloadPath: nullable(Type.String()),
    flow: nullable(TriggerFlow),
    enabled: Type.Boolean(),
    labels: Labels,
    acceptPath: Type.String({ description: 'Path for calls, below the mount prefix' }),
    lastAcceptedAt: nullable(Time),
    createdAt: Time,
    updatedAt: Time,
  },
  { title: 'InboundTrigger' },
);
export type InboundTrigger = Static<typeof InboundTrigger>;

/** The answer to Slack's question whether the address is its owner's. */
export const SlackChallenge = Type.Object({ challenge: Type.String() }, { title: 'SlackChallenge' });
