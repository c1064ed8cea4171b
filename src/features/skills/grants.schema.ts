import Type, { type Static } from 'typebox';
import { closed, nullable, Time, Uuid } from '../../contract/schema.ts';

export const SkillScriptGrantRequest = closed(
  {
    skillName: Type.String({ minLength: 1, maxLength: 64 }),
    scriptName: Type.Optional(
      nullable(Type.String(), { description: 'Null: every script, including those added later' }),
    ),
    expiresAt: Type.Optional(nullable(Type.String({ format: 'date-time', description: 'In the future; null: never' }))),
  },
  { title: 'SkillScriptGrantRequest' },
);
export type SkillScriptGrantRequest = Static<typeof SkillScriptGrantRequest>;

export const SkillScriptGrant = Type.Object(
  {
    id: Uuid,
    tenantId: Type.String(),
    skillName: Type.String(),
    scriptName: nullable(Type.String()),
    grantedBy: nullable(Type.String()),
    grantedAt: Time,
    expiresAt: nullable(Time),
    revokedAt: nullable(Time),
  },
  { title: 'SkillScriptGrant' },
);
export type SkillScriptGrant = Static<typeof SkillScriptGrant>;
