import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AcpError } from '../../../src/contract/errors.ts';
import type { Principal } from '../../../src/core/context.ts';
import { createDispatch } from '../../../src/core/dispatch.ts';
import { newId } from '../../../src/core/ids.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { noTelemetry } from '../../../src/core/telemetry/telemetry.ts';
import type { CompiledAgent } from '../../../src/engine/compiled-agent.ts';
import { createToolRegistry, registeredTool, type ToolRegistry } from '../../../src/engine/tools/registry.ts';
import type { ToolDefinition } from '../../../src/engine/tools/tool.ts';
import { userMessage } from '../../../src/engine/turn/agent-loop.ts';
import { agentOperations } from '../../../src/features/agents/agents.operations.ts';
import type { AgentDefinition, AgentValidationReport } from '../../../src/features/agents/agents.schema.ts';
import {
  type AgentSettings,
  agentReferences,
  agentsFeature,
  type CodeAgents,
  noCodeAgents,
} from '../../../src/features/agents/index.ts';
import { agentBodyErrors } from '../../../src/features/agents/unknown-fields.rules.ts';
import { createAuditLog } from '../../../src/features/audit/index.ts';
import type { RemoteTools } from '../../../src/features/mcp-servers/index.ts';
import type { AgentSkills } from '../../../src/features/skills/index.ts';
import type { ModelCatalogEntry, ModelProvider } from '../../../src/providers/models/model-provider.ts';
import { incomingCall } from '../../support/incoming-call.ts';
import { instanceStateOf } from '../../support/instance-state.ts';
import { openTestStorage, type TestStore } from '../../support/store.ts';

const entry = (name: string, more: Partial<ModelCatalogEntry> = {}): ModelCatalogEntry => ({
  name,
  displayName: null,
  contextWindowTokens: null,
  maxOutputTokens: null,
  supportsStreaming: true,
  supportsTools: true,
  supportsReasoning: false,
  supportsStructuredOutput: null,
  inputCostPerMillionTokens: null,
  outputCostPerMillionTokens: null,
  cachedInputCostPerMillionTokens: null,
  ...more,
});

const neverCalled = (): never => {
  throw new Error('Definitions are checked, saved and estimated without a model call.');
};

const provider = (name: string, catalog: readonly ModelCatalogEntry[]): ModelProvider => ({
  name,
  kind: 'compatible',
  displayName: null,
  defaultModel: null,
  catalog,
  stream: neverCalled,
  generate: neverCalled,
});

const registered = [
  provider('demo', [
    entry('demo-1', { contextWindowTokens: 1000 }),
    entry('demo-plain', { supportsStructuredOutput: false }),
  ]),
  provider('open', []),
];

export const providers = {
  list: () => registered,
  get: (name: string) => registered.find((candidate) => candidate.name === name),
};

const tool = (name: string, more: Partial<ToolDefinition> = {}): ToolDefinition => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  execute: async () => null,
  ...more,
});

const registry = createToolRegistry(
  ['clock_now', 'weather'].map((name) => ({ definition: tool(name), place: () => ({ file: 'test', line: null }) })),
);

/** Approvals are not there yet, so the registry takes no such tool; the rule about it is. */
const asking = registeredTool(tool('pay', { requiresApproval: true, effect: 'External' }));

export const tools: ToolRegistry = {
  list: registry.list,
  get: (name) => (name === 'pay' ? asking : registry.get(name)),
};

const settings: AgentSettings = {
  UtilityModel: { Provider: null, Model: null },
  Agents: { MaxParameterValueLength: 16 },
  Skills: { MaxSkillsPerAgent: 10 },
  AgentGraph: {
    MaxDepth: 3,
    MaxTotalTokens: 0,
    MaxTotalRuns: 0,
    MaxTotalCost: null,
    MaxDuration: null,
    ChildDeadline: null,
    WaitTimeout: null,
  },
};

export const references = agentReferences(providers, tools, settings, {
  hostSkills: new Map(),
  builtInTools: () => [],
  allowsProvider: () => true,
  remoteAgents: {
    allowPrivate: false,
    mayNameIn: () => true,
    tool: () => assert.fail('no definition here has a remote agent'),
  },
  loopCriteria: new Set(['reviewed']),
});

export const noSkills: AgentSkills = {
  resolve: async () => new Map(),
  fingerprints: async (_tenantId, names) => names.map(() => ''),
};

const admin: Principal = {
  kind: 'Token',
  role: 'Admin',
  scopes: null,
  actor: 'tester',
  userId: null,
  apiKey: null,
  permissions: null,
};

type Verb = keyof typeof agentOperations;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

const noRemoteTools: RemoteTools = {
  ready: () => null,
  get: () => undefined,
  list: () => [],
  serverOf: () => null,
  hasServer: (_tenantId, name) => name === 'docs',
  lookFor: async () => new Map(),
};

export interface AgentWorld {
  call(verb: Verb, params: Record<string, unknown>, body?: unknown, tenantId?: string): Promise<Answer>;
  compile(name: string, tenantId?: string): Promise<CompiledAgent>;
}

export interface WorldOptions {
  readonly codeAgents?: CodeAgents;
  /** Texts of a session. */
  readonly history?: readonly string[];
  readonly ownsStore?: boolean;
  readonly store?: TestStore;
}

/** The agents feature on a store of its own, called through the dispatch as an administrator. */
export const openWorld = async (context: TestContext, options: WorldOptions = {}): Promise<AgentWorld> => {
  const storage = await openTestStorage(context, options.store);
  let clock = Date.UTC(2030, 0, 1);
  const now = () => clock++;
  const feature = agentsFeature({
    exposesModels: false,
    exposedModels: {},
    telemetry: noTelemetry(),
    storage,
    state: instanceStateOf(options.ownsStore ?? true, now),
    references,
    codeAgents: options.codeAgents ?? noCodeAgents,
    skills: noSkills,
    remoteTools: noRemoteTools,
    history: async () =>
      (options.history ?? []).map((message) => userMessage({ id: '', message, documents: [], attachments: [] }, '', 0)),
    attachments: { named: async () => [], measure: async () => ({ texts: [], others: 0 }) },
    reserveRatio: 0.2,
    audit: createAuditLog({ storage, telemetry: noTelemetry(), log: silentLogger, now: () => clock, newId }),
    prefix: '/base',
    now,
  });
  const dispatch = createDispatch(
    { agents: agentOperations },
    { agents: feature.handlers },
    { bodyErrors: agentBodyErrors },
  );
  return {
    async call(verb, params, body, tenantId = 'default') {
      const found = dispatch.entries.find((candidate) => candidate.verb === verb);
      if (found === undefined) throw new Error(`There is no operation ${verb}.`);
      const authenticate = () => ({ principal: admin, tenantId });
      const reply = await dispatch.call(found, incomingCall(found, { params, body, authenticate }));
      if ('stream' in reply || 'file' in reply || 'parts' in reply) throw new Error('Agent operations answer JSON.');
      return { status: reply.status, headers: reply.headers ?? {}, body: reply.body };
    },
    compile: (name, tenantId = 'default') => feature.source.compile(tenantId, name),
  };
};

/** A body with the required fields and what the test adds. */
export const definition = (name: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  name,
  model: { provider: 'demo', model: 'demo-1' },
  ...more,
});

export const withModel = (name: string, model: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  definition(name, { model: { provider: 'demo', model: 'demo-1', ...model }, ...more });

export const create = async (world: AgentWorld, body: Record<string, unknown>, tenantId?: string) =>
  (await world.call('create', {}, body, tenantId)).body as AgentDefinition;

export const save = async (world: AgentWorld, body: Record<string, unknown>, tenantId?: string) =>
  (await world.call('save', { name: body['name'] }, body, tenantId)).body as AgentDefinition;

export const validate = async (world: AgentWorld, body: unknown) =>
  (await world.call('validate', {}, body)).body as AgentValidationReport;

/** The error that a call ends with; fails when it ends without one. */
export const refusal = async (call: Promise<unknown>): Promise<AcpError> => {
  try {
    await call;
  } catch (error) {
    if (error instanceof AcpError) return error;
    throw error;
  }
  throw new Error('The call was expected to fail.');
};

export const errorPaths = (error: AcpError): string[] => (error.details.errors ?? []).map(({ path }) => path);
