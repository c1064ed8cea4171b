import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SkillScriptGrant, SkillScriptGrantRequest } from './grants.schema.ts';

const manage = { tag: 'Skill script grants', role: 'Admin', scope: 'SecurityAdmin' } as const;

export const grantOperations = defineOperations({
  list: {
    tag: 'Skill script grants',
    role: 'Reader',
    scope: 'SecurityAdmin',
    method: 'GET',
    path: '/api/skill-script-grants',
    summary: 'List the grants of the tenant, active or not, newest first',
    description:
      'A grant without `scriptName` covers every script of its skill. One that has expired or was revoked stays in the list.',
    responses: { 200: Type.Array(SkillScriptGrant) },
    errors: [],
    cli: { columns: ['skillName', 'scriptName', 'grantedBy', 'grantedAt', 'expiresAt', 'revokedAt'] },
  },
  create: {
    ...manage,
    method: 'POST',
    path: '/api/skill-script-grants',
    summary: 'Allow the scripts of a skill, or one of them, to run',
    description:
      'Without `scriptName` the grant covers every script of the skill, those added later, too. A new grant for the same scripts takes the place of the earlier one.',
    body: SkillScriptGrantRequest,
    responses: { 201: SkillScriptGrant },
    errors: ['expires-at-not-in-future', 'script-execution-disabled'],
    audit: { action: 'skill-script-grant.create', entity: 'skill-script-grant', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
  remove: {
    ...manage,
    method: 'DELETE',
    path: '/api/skill-script-grants/{skillName}',
    summary: 'Revoke a grant, named as it was given',
    description: 'The scripts cannot be started from then on; one that runs already is not stopped.',
    params: Type.Object({ skillName: Type.String() }),
    query: Type.Object({
      scriptName: Type.Optional(Type.String({ description: 'Without it the grant of the whole skill is meant' })),
    }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'skill-script-grant.revoke', entity: 'skill-script-grant', mode: 'fail-closed' },
    cli: { command: 'grants revoke', done: 'Revoked a grant for skill {skillName}.' },
  },
});
