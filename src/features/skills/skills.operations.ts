import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { AgentSkillDefinition, AgentSkillRequest } from './skills.schema.ts';

const read = { tag: 'Skills', role: 'Reader', scope: 'AgentsRead' } as const;
const write = { tag: 'Skills', role: 'Admin', scope: 'AgentsAdmin' } as const;

// Any text: a name that no skill can have is not found, like any other unknown one.
const SkillName = Type.Object({ name: Type.String({ minLength: 1, maxLength: 256 }) });

export const skillOperations = defineOperations({
  list: {
    ...read,
    method: 'GET',
    path: '/api/skills',
    summary: 'List the stored skills of the tenant, complete, by name',
    responses: { 200: Type.Array(AgentSkillDefinition) },
    errors: [],
    cli: { columns: ['name', 'version', 'enabled', 'description', 'updatedAt'] },
  },
  get: {
    ...read,
    method: 'GET',
    path: '/api/skills/{name}',
    summary: 'Show one stored skill',
    params: SkillName,
    responses: { 200: AgentSkillDefinition },
    errors: ['skill-not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/skills/{name}',
    summary: 'Save a skill as a whole',
    params: SkillName,
    body: AgentSkillRequest,
    maxBodyBytes: 16_777_216,
    responses: { 200: AgentSkillDefinition, 201: AgentSkillDefinition },
    errors: ['name-mismatch', 'interpreter-not-registered', 'skill-code-defined'],
    audit: 'skill.save',
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/skills/{name}',
    summary: 'Remove a skill with its resources, scripts and grants',
    params: SkillName,
    responses: { 204: null },
    errors: ['skill-not-found', 'skill-code-defined'],
    audit: 'skill.delete',
    cli: { command: 'skills delete', done: 'Removed skill {name}.' },
  },
});
