import { AcpError } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import type { AuditedCall, CallContext, Handlers } from '../../core/context.ts';
import { type StoreEntries, tenantKey } from '../../core/instance-state.ts';
import { isoTime } from '../../core/iso-time.ts';
import type { AuditLog, ChangedEntity } from '../audit/index.ts';
import type { RemoteTools } from '../mcp-servers/index.ts';
import { allowedProviderFindings } from './agent-providers.rules.ts';
import type { AgentCatalog, KnownAgent } from './agents.catalog.ts';
import { agentContent } from './agents.content.ts';
import { type Finding, fieldErrors, isError } from './agents.findings.ts';
import type { agentOperations } from './agents.operations.ts';
import { type AgentReferences, bodyFindings } from './agents.rules.ts';
import type { AgentDefinition, AgentDefinitionRequest, AgentDescriptor } from './agents.schema.ts';
import { type AgentStore, agentStore, missingAgent, missingVersion, type StoredAgent } from './agents.store.ts';
import type { EstimateHandler } from './estimate.service.ts';
import { checkedReferences } from './tenant-tools.ts';

export interface AgentServiceDeps {
  readonly store: AgentStore;
  readonly catalog: AgentCatalog;
  readonly versions: Pick<StoreEntries<string>, 'changed'>;
  readonly references: AgentReferences;
  readonly remoteTools: RemoteTools;
  readonly estimate: EstimateHandler;
  readonly audit: Pick<AuditLog, 'change'>;
  /** Path in front of every operation, for `Location`. */
  readonly prefix: string;
  readonly now: () => number;
}

/** A stored version as callers see it. */
const toDefinition = (agent: StoredAgent): AgentDefinition => ({
  ...agent.content,
  origin: 'database',
  version: agent.version,
  tenantId: agent.tenantId,
  updatedAt: isoTime(agent.updatedAt),
  updatedBy: agent.updatedBy,
  restoredFrom: agent.restoredFrom,
});

/** The entry of the catalog. */
const toDescriptor = (agent: KnownAgent): AgentDescriptor => {
  const { content } = agent;
  return {
    name: content.name,
    displayName: content.displayName,
    description: content.description,
    origin: agent.origin,
    version: agent.version,
    model: { provider: content.model.provider, model: content.model.model },
    toolNames: content.toolNames,
    skillNames: content.skillNames,
    callableAgentNames: content.callableAgentNames,
    usesHarness: content.harness !== null,
    updatedAt: agent.origin === 'code' ? null : isoTime(agent.updatedAt),
  };
};

const refuseErrors = (findings: readonly Finding[]): void => {
  const errors = fieldErrors(findings);
  const [first] = errors;
  if (first === undefined) return;
  const detail = errors.length === 1 ? first.message : `The definition has ${errors.length} errors. ${first.message}`;
  throw new AcpError('definition-invalid', detail, { details: { errors } });
};

const orThrow = <T>(value: T | null, otherwise: () => AcpError): T => {
  if (value === null) throw otherwise();
  return value;
};

const changed = (before: StoredAgent | null, after: StoredAgent | null): ChangedEntity => ({
  id: (after ?? before)?.name ?? '',
  before: before === null ? null : toDefinition(before),
  after: after === null ? null : toDefinition(after),
});

export const agentService = (deps: AgentServiceDeps): Handlers<typeof agentOperations> => {
  const { store, catalog, versions, references, estimate, audit, prefix, now } = deps;

  const check = async (
    tenantId: string,
    body: AgentDefinitionRequest,
    isSaved: boolean,
  ): Promise<readonly Finding[]> => {
    const content = agentContent(body);
    const reached = await catalog.reach(tenantId, content);
    const known = await checkedReferences(references, deps.remoteTools, tenantId, content, isSaved);
    return [
      ...bodyFindings(body, reached, known),
      ...allowedProviderFindings(tenantId, content, references.allowsProvider),
    ];
  };
  const refuseCode = (name: string): void => {
    if (catalog.isCode(name))
      throw new AcpError('agent-code-defined', `The agent "${name}" is defined in code and cannot be changed here.`);
  };
  /** Versions of a stored agent that no code agent hides; 404 otherwise. */
  const refuseUnstored = async (tenantId: string, name: string): Promise<void> => {
    const [stamp = null] = catalog.isCode(name) ? [] : await store.currentStamps(tenantId, [name]);
    if (stamp === null) throw missingAgent(name);
  };
  /** Appends a version, and tells of it and the one before: versions are never changed, so that it can still be read. */
  const append = async (
    context: CallContext & AuditedCall,
    name: string,
    write: (agents: AgentStore) => Promise<StoredAgent>,
  ) => {
    const { tenantId } = context;
    const agent = await audit.change(context, async (stores, tell) => {
      const agents = stores(agentStore);
      const after = await write(agents);
      tell(changed(await agents.findVersion(tenantId, name, after.version - 1), after));
      return after;
    });
    versions.changed(tenantKey(tenantId, name));
    return ok(toDefinition(agent));
  };

  return {
    async list({ tenantId }) {
      return ok((await catalog.list(tenantId)).map(toDescriptor));
    },

    async create(context, { body }) {
      const { tenantId, principal } = context;
      refuseErrors(await check(tenantId, body, true));
      const { name } = body;
      const taken = () => new AcpError('agent-name-taken', `An agent "${name}" exists already.`);
      if (catalog.isCode(name)) throw taken();
      const saving = { updatedAt: now(), updatedBy: principal.actor };
      const agent = await audit.change(context, async (stores, tell) => {
        const made = orThrow(await stores(agentStore).create(tenantId, agentContent(body), saving), taken);
        tell(changed(null, made));
        return made;
      });
      versions.changed(tenantKey(tenantId, name));
      return { status: 201, body: toDefinition(agent), headers: { location: `${prefix}/api/agents/${name}` } };
    },

    async get({ tenantId }, { params }) {
      const agent = orThrow(await catalog.find(tenantId, params.name), () => missingAgent(params.name));
      const definition = agent.origin === 'code' ? null : toDefinition(agent);
      return ok({ descriptor: toDescriptor(agent), definition, isEditable: definition !== null });
    },

    async save(context, { params, body }) {
      const { tenantId, principal } = context;
      const { name } = params;
      if (body.name !== name)
        throw new AcpError('name-mismatch', `The path names "${name}"; the body names another agent.`, {
          details: { errors: [{ path: 'name', message: `must be ${name}: an agent keeps its name` }] },
        });
      refuseCode(name);
      await refuseUnstored(tenantId, name);
      refuseErrors(await check(tenantId, body, true));
      const saving = { expectedVersion: body.expectedVersion ?? null, updatedAt: now(), updatedBy: principal.actor };
      return append(context, name, (agents) => agents.append(tenantId, agentContent(body), saving));
    },

    async remove(context, { params }) {
      const { tenantId } = context;
      const { name } = params;
      refuseCode(name);
      await audit.change(context, async (stores, tell) => {
        const removed = await stores(agentStore).remove(tenantId, name);
        if (removed === null) throw missingAgent(name);
        tell(changed(removed, null));
      });
      versions.changed(tenantKey(tenantId, name));
      return noContent();
    },

    async validate({ tenantId }, { body }) {
      const messages = [...(await check(tenantId, body, false))];
      const inconclusive = messages.some(({ code }) => code === 'mcp-unreachable');
      return ok({ valid: !messages.some(isError), inconclusive, messages });
    },

    async versions({ tenantId }, { params }) {
      const { name } = params;
      const stored = catalog.isCode(name) ? [] : await store.versions(tenantId, name);
      if (stored.length === 0) throw missingAgent(name);
      return ok(stored.map(toDefinition));
    },

    async rollback(context, { params, body }) {
      const { tenantId, principal } = context;
      const { name } = params;
      refuseCode(name);
      const saving = { expectedVersion: body.expectedVersion ?? null, updatedAt: now(), updatedBy: principal.actor };
      return append(context, name, (agents) => agents.restore(tenantId, name, body.version, saving));
    },

    async diff({ tenantId }, { params }) {
      const { name, a, b } = params;
      await refuseUnstored(tenantId, name);
      const left = orThrow(await store.findVersion(tenantId, name, a), () => missingVersion(name, a));
      const right = orThrow(await store.findVersion(tenantId, name, b), () => missingVersion(name, b));
      return ok({ left: toDefinition(left), right: toDefinition(right) });
    },

    estimate,
  };
};
