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
      'Agents of the host, of modules and of the store are in one list; where two have a name, the one of the host or module counts. Definitions are left out: ask for one agent to see it.',
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
      'The definition is checked as a whole first, and any finding of severity Error refuses it with one entry per field. A name that a stored agent or one of the host has is refused.',
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
      'A stored agent comes with its current definition. One that is defined in code has `definition` null: it can be run, but not changed here.',
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
      'The body replaces the whole definition, so a field that is left out goes back to its default. With `expectedVersion` the save is refused when somebody else has saved meanwhile.',
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
      'No version can be read or rolled back to afterwards. Runs, sessions and audit entries of the agent stay.',
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
      'Nothing is saved and no model is called. A definition with errors is a normal answer with `valid` false; only a body that is no definition at all is refused.',
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
      'Every version holds the definition as it was saved, who saved it and, after a rollback, which version it came from.',
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
      'History is not rewritten: the restored content becomes the newest version, and can be rolled back itself. It is not checked again, so a reference that has gone since then is found by the next run.',
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
    summary: 'Two versions of a stored agent, verbatim',
    description: 'Both definitions are answered as they were saved; comparing them is left to the reader.',
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
      "Instructions, tools, the session's history, attachments and the message are counted as the next run would send them. No model is called, and nothing is stored.",
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
