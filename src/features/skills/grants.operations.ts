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
      'A grant without `scriptName` covers every script of its skill. Expired and revoked grants remain in the list.',
    responses: { 200: Type.Array(SkillScriptGrant) },
    errors: [],
    cli: { columns: ['skillName', 'scriptName', 'grantedBy', 'grantedAt', 'expiresAt', 'revokedAt'] },
  },
  create: {
    ...manage,
    method: 'POST',
    path: '/api/skill-script-grants',
    summary: 'Allow one script or all scripts of a skill to run',
    description:
      'Without `scriptName` the grant covers every script of the skill, including scripts added later. A new grant for the same scripts replaces the earlier one.',
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
    summary: 'Revoke a grant by the names of its skill and script',
    description: 'Its scripts can no longer be started; a script that already runs is not stopped.',
    params: Type.Object({ skillName: Type.String() }),
    query: Type.Object({
      scriptName: Type.Optional(Type.String({ description: 'Absent: the grant for all scripts of the skill' })),
    }),
    responses: { 204: null },
    errors: ['not-found'],
    audit: { action: 'skill-script-grant.revoke', entity: 'skill-script-grant', mode: 'fail-closed' },
    cli: { command: 'grants revoke', done: 'Revoked a grant for skill {skillName}.' },
  },
});
