import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { SaveQuery } from '../../contract/save-query.ts';
import { AgentSkillDefinition, AgentSkillRequest } from './skills.schema.ts';

const read = { tag: 'Skills', role: 'Reader', scope: 'AgentsRead' } as const;
const write = { tag: 'Skills', role: 'Admin', scope: 'AgentsAdmin' } as const;

// Any text: a name that no skill can have is not found, like any other unknown one.
const SkillName = Type.Object({ name: Type.String() });

export const skillOperations = defineOperations({
  list: {
    ...read,
    method: 'GET',
    path: '/api/skills',
    summary: 'List the stored skills of the tenant with their contents, by name',
    description:
      'Each skill includes its instructions, resources and scripts. Skills of the host and of modules are not stored and not listed.',
    responses: { 200: Type.Array(AgentSkillDefinition) },
    errors: [],
    cli: { columns: ['name', 'version', 'enabled', 'description', 'updatedAt'] },
  },
  get: {
    ...read,
    method: 'GET',
    path: '/api/skills/{name}',
    summary: 'Show one stored skill',
    description: 'The response is the complete current version, ready for export as an Agent Skills folder.',
    params: SkillName,
    responses: { 200: AgentSkillDefinition },
    errors: ['skill-not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/skills/{name}',
    summary: 'Create or replace a skill',
    description:
      'A new skill becomes version 1; otherwise the body replaces everything and the version increases by one. Scripts need an interpreter that the host has registered.',
    params: SkillName,
    query: SaveQuery,
    body: AgentSkillRequest,
    maxBodyBytes: 16_777_216,
    responses: { 200: AgentSkillDefinition, 201: AgentSkillDefinition },
    errors: ['name-mismatch', 'interpreter-not-registered', 'skill-code-defined', 'version-conflict'],
    audit: { action: 'skill.save', entity: 'skill', mode: 'noted' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/skills/{name}',
    summary: 'Remove a skill with its resources, scripts and grants',
    description: 'Agents that name the skill still run, without it; their validation reports the missing skill.',
    params: SkillName,
    responses: { 204: null },
    errors: ['skill-not-found', 'skill-code-defined'],
    audit: { action: 'skill.delete', entity: 'skill', mode: 'noted' },
    cli: { command: 'skills delete', done: 'Removed skill {name}.' },
  },
});
