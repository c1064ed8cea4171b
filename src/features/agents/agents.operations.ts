import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { AgentRunRequest } from '../../contract/run-request.ts';
import { AgentName, Int32 } from '../../contract/schema.ts';
import {
  AgentDefinition,
  AgentDefinitionRequest,
  AgentDescriptor,
  AgentDetailResponse,
  AgentRollbackRequest,
  AgentValidationReport,
  AgentVersionDiffResponse,
  ContextWindowEstimate,
} from './agents.schema.ts';

const read = { tag: 'Agents', role: 'Reader', scope: 'AgentsRead' } as const;
const write = { tag: 'Agents', role: 'Admin', scope: 'AgentsAdmin' } as const;

export const agentOperations = defineOperations({
  list: {
    ...read,
    method: 'GET',
    path: '/api/agents',
    summary: 'List the agents of every source, by name',
    description:
      'One list covers agents of the host, of modules and of the store; if two share a name, the agent of the host or module takes precedence. Definitions are omitted; get a single agent to read its definition.',
    responses: { 200: Type.Array(AgentDescriptor) },
    errors: [],
    cli: { columns: ['name', 'origin', 'version', 'model.provider', 'model.model', 'updatedAt'] },
  },
  create: {
    ...write,
    method: 'POST',
    path: '/api/agents',
    summary: 'Create an agent as version 1',
    description:
      'The complete definition is validated first; any finding of severity Error rejects it, with one entry per field. A name that a stored agent or an agent of the host already has is rejected.',
    body: AgentDefinitionRequest,
    responses: { 201: AgentDefinition },
    errors: ['definition-invalid', 'agent-name-taken'],
    audit: { action: 'agent.create', entity: 'agent', mode: 'noted' },
  },
  get: {
    ...read,
    method: 'GET',
    path: '/api/agents/{name}',
    summary: 'Show one agent',
    description:
      'A stored agent includes its current definition. For an agent defined in code `definition` is null: it can be run, but not changed over the API.',
    params: AgentName,
    responses: { 200: AgentDetailResponse },
    errors: ['agent-not-found'],
  },
  save: {
    ...write,
    method: 'PUT',
    path: '/api/agents/{name}',
    summary: 'Append a version to a stored agent',
    description:
      'The body replaces the complete definition, so an omitted field returns to its default. With `expectedVersion` the save is rejected if another version is current.',
    params: AgentName,
    body: AgentDefinitionRequest,
    responses: { 200: AgentDefinition },
    errors: ['definition-invalid', 'name-mismatch', 'agent-not-found', 'agent-code-defined', 'version-conflict'],
    audit: { action: 'agent.update', entity: 'agent', mode: 'noted' },
  },
  remove: {
    ...write,
    method: 'DELETE',
    path: '/api/agents/{name}',
    summary: 'Delete a stored agent with all its versions',
    description:
      'Its versions can no longer be read or restored. Runs, sessions and audit entries of the agent remain.',
    params: AgentName,
    responses: { 204: null },
    errors: ['agent-not-found', 'agent-code-defined'],
    audit: { action: 'agent.delete', entity: 'agent', mode: 'noted' },
    cli: { command: 'agents delete', done: 'Deleted agent {name} with all its versions.' },
  },
  validate: {
    tag: 'Agents',
    role: 'Operator',
    scope: 'AgentsAdmin',
    method: 'POST',
    changesNothing: true,
    path: '/api/agents/validate',
    summary: 'Compile a definition without saving it and report every finding',
    description:
      'Nothing is saved and no model is called. A definition with errors gets a normal response with `valid` false; only a body that is not a definition is rejected.',
    body: AgentDefinitionRequest,
    responses: { 200: AgentValidationReport },
    errors: [],
    cli: { handWritten: true },
  },
  versions: {
    ...read,
    method: 'GET',
    path: '/api/agents/{name}/versions',
    summary: 'List the versions of a stored agent, newest first',
    description:
      'Each version holds the definition as saved, its author and, after a rollback, the version that was restored.',
    params: AgentName,
    responses: { 200: Type.Array(AgentDefinition) },
    errors: ['agent-not-found'],
    cli: { columns: ['version', 'model.provider', 'model.model', 'updatedAt', 'updatedBy', 'restoredFrom'] },
  },
  rollback: {
    ...write,
    method: 'POST',
    path: '/api/agents/{name}/rollback',
    summary: 'Append the content of an earlier version as a new one',
    description:
      'History is not rewritten: the restored content becomes the newest version, which can be rolled back in turn. The content is not validated again, so only the next run reports a reference that no longer exists.',
    params: AgentName,
    body: AgentRollbackRequest,
    responses: { 200: AgentDefinition },
    errors: ['agent-not-found', 'version-not-found', 'agent-code-defined', 'version-conflict'],
    audit: { action: 'agent.rollback', entity: 'agent', mode: 'noted' },
  },
  diff: {
    ...read,
    method: 'GET',
    path: '/api/agents/{name}/versions/{a}/diff/{b}',
    summary: 'Get two versions of a stored agent, verbatim',
    description: 'The response holds both definitions as saved; the client compares them.',
    params: Type.Object({ name: Type.String(), a: Int32(), b: Int32() }),
    responses: { 200: AgentVersionDiffResponse },
    errors: ['agent-not-found', 'version-not-found'],
    cli: { handWritten: true },
  },
  estimate: {
    tag: 'Agents',
    role: 'Reader',
    scope: 'RunsRead',
    method: 'POST',
    changesNothing: true,
    path: '/api/agents/{name}/estimate',
    summary: 'Estimate the prompt of a run against the context window',
    description:
      'Counts instructions, tools, session history, attachments and the message as the next run would send them. No model is called, and nothing is stored.',
    params: AgentName,
    body: AgentRunRequest,
    nullIsAbsent: true,
    maxBodyBytes: 4_194_304,
    responses: { 200: ContextWindowEstimate },
    errors: [
      'agent-not-found',
      'agent-not-compilable',
      'parameter-invalid',
      'attachment-not-found',
      'message-required',
      'feature-not-available',
    ],
  },
});
