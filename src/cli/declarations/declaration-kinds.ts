import Type from 'typebox';
import type { Client } from '../../client/client.ts';
import { definitionContent } from '../../client/definition-content.ts';
import { AcpError } from '../../contract/errors.ts';
import { isRecord } from '../../contract/record.ts';
import { namePattern, oneOf, tenantPattern } from '../../contract/schema.ts';
import { nearestName } from '../../core/nearest-name.ts';
import { ToolApprovalRuleRequest } from '../../features/approvals/approvals.schema.ts';
import { McpServerRequest, serverNamePattern } from '../../features/mcp-servers/mcp-servers.schema.ts';
import { TenantEgressPolicyRequest } from '../../features/provider-access/provider-access.schema.ts';
import { QuotaSaveRequest } from '../../features/quotas/quotas.schema.ts';
import { RetentionPolicySaveRequest, retentionTargets } from '../../features/retention/retention.schema.ts';
import { JobScheduleSaveRequest } from '../../features/schedules/schedules.schema.ts';
import { AgentSkillRequest } from '../../features/skills/skills.schema.ts';
import { InboundTriggerSaveRequest } from '../../features/triggers/triggers.schema.ts';
import { WebhookSaveRequest } from '../../features/webhooks/webhooks.schema.ts';
import { bodyOf, storedDefinition } from '../definitions/apply-definition.ts';
import { skillContent } from '../definitions/skill-content.ts';
import { type DeclarationKind, declarationKind, type Members } from './declaration-kind.ts';

const name = { name: Type.String({ pattern: namePattern }) };
const nameOf = (members: Members): string => String(members['name']);
const paramsOf = (members: Members) => ({ params: { name: nameOf(members) } });
const idOf = ({ id }: Members): string => String(id);

/** Empty names the same as none: everything. */
const withoutEmptyAgent = (members: Members): Members =>
  members['agentName'] === '' ? { ...members, agentName: null } : members;

const agents = async (client: Client, only: string | null): Promise<readonly Members[]> => {
  const names =
    only === null
      ? (await client.agents.list()).body.flatMap((agent) => (agent.origin === 'database' ? [agent.name] : []))
      : [only];
  const stored: Members[] = [];
  for (const agent of names) {
    const definition = await storedDefinition(client, agent);
    if (definition !== null) stored.push(definition);
  }
  return stored;
};

const schedules = async (client: Client): Promise<readonly Members[]> => {
  const { body } = await client.schedules.list();
  const stored: Members[] = [];
  // A list has null for a payload that cannot be decrypted; one schedule by itself says that it cannot be.
  for (const schedule of body)
    stored.push(schedule.payload === null ? (await client.schedules.get(paramsOf(schedule))).body : schedule);
  return stored;
};

/** Of one tenant, or of those that the credential may address and that have a record, with its own. */
const egressPolicies = async (client: Client, only: string | null): Promise<readonly Members[]> => {
  const tenants =
    only === null
      ? [(await client.tenants.current()).body.tenantId, ...(await client.tenants.list()).body.map(({ slug }) => slug)]
      : [only];
  const stored: Members[] = [];
  for (const tenantId of new Set(tenants)) {
    const { body } = await client.egressPolicies.get({ params: { tenantId } });
    if (body.allowedProviders !== null) stored.push(body);
  }
  return stored;
};

/** What answers of the service have for the value of a header. */
const masked = '***';
const isMasked = ({ headers }: Members): boolean => isRecord(headers) && Object.values(headers).includes(masked);

/** All conditions of a rule have to hold: neither their order nor a repetition says anything, nor does the order of their members. */
const conditionsInOrder = (conditions: unknown): readonly unknown[] => {
  const texts = (Array.isArray(conditions) ? conditions : []).map((condition: unknown) => {
    if (!isRecord(condition)) return JSON.stringify(condition);
    const { path, operator, value } = condition;
    return JSON.stringify({ path, operator, value });
  });
  return [...new Set(texts)].sort().map((text) => JSON.parse(text) as unknown);
};

/** `amount LessThan 100`. */
const conditionText = (condition: unknown): string =>
  isRecord(condition)
    ? `${condition['path']} ${condition['operator']} ${JSON.stringify(condition['value'])}`
    : JSON.stringify(condition);

const agentKind: DeclarationKind = {
  kind: 'Agent',
  dependsOn: ['EgressPolicy', 'McpServer', 'Skill'],
  schema: null,
  preview: null,
  owner: 'metadata',
  nameOf,
  list: agents,
  content: definitionContent,
  async save(client, declared, before) {
    const body = bodyOf({ value: declared });
    if (before === null) return (await client.agents.create({ body })).body;
    // A change that somebody else has made meanwhile stays.
    const guarded = { expectedVersion: Number(before['version']), ...body };
    return (await client.agents.save({ ...paramsOf(declared), body: guarded })).body;
  },
  remove: (client, stored) => client.agents.remove(paramsOf(stored)),
};

/** Everything that files can declare. A new kind is an entry here. */
export const declarationKinds: readonly DeclarationKind[] = [
  declarationKind<Parameters<Client['egressPolicies']['save']>[0]['body']>({
    kind: 'EgressPolicy',
    dependsOn: [],
    key: { tenantId: Type.String({ pattern: tenantPattern }) },
    body: TenantEgressPolicyRequest,
    defaults: { labels: {} },
    owner: 'labels',
    namedBy: 'tenantId',
    nameOf: ({ tenantId }) => String(tenantId),
    list: egressPolicies,
    save: (client, body, tenantId, query) => client.egressPolicies.save({ params: { tenantId }, query, body }),
    remove: (client, { tenantId }) => client.egressPolicies.remove({ params: { tenantId: String(tenantId) } }),
  }),
  declarationKind<AgentSkillRequest>({
    kind: 'Skill',
    dependsOn: [],
    key: {},
    body: AgentSkillRequest,
    defaults: {
      compatibility: null,
      license: null,
      allowedTools: null,
      metadata: {},
      enabled: true,
      resources: [],
      scripts: [],
    },
    owner: 'metadata',
    nameOf,
    list: async (client) => (await client.skills.list()).body,
    save: (client, body, skill, query) => client.skills.save({ params: { name: skill }, query, body }),
    remove: (client, stored) => client.skills.remove(paramsOf(stored)),
    // It fits the schema of a skill, or comes from the store.
    normal: (members) => skillContent(members as unknown as AgentSkillRequest),
  }),
  declarationKind<McpServerRequest>({
    kind: 'McpServer',
    dependsOn: [],
    key: { name: Type.String({ pattern: serverNamePattern }) },
    body: McpServerRequest,
    defaults: {
      transport: 'StreamableHttp',
      protocol: 'Auto',
      headers: {},
      enabled: true,
      requiresApproval: true,
      pinning: 'Warn',
      effects: {},
      oauthEnabled: false,
      oauthAuthorizationMode: 'AuthorizationCode',
      labels: {},
    },
    owner: 'labels',
    nameOf,
    // Programs stand in the configuration of the host.
    list: async (client) => (await client.mcpServers.list()).body.filter(({ transport }) => transport !== 'Stdio'),
    save: (client, body, server, query) => client.mcpServers.save({ params: { name: server }, query, body }),
    remove: (client, stored) => client.mcpServers.remove(paramsOf(stored)),
  }),
  agentKind,
  declarationKind<JobScheduleSaveRequest>({
    kind: 'Schedule',
    dependsOn: ['Agent'],
    key: name,
    body: JobScheduleSaveRequest,
    // The lane has none: the configuration of the service says which one it is.
    defaults: { cron: null, timeZone: 'UTC', payload: null, enabled: true, labels: {} },
    owner: 'labels',
    nameOf,
    list: schedules,
    save: (client, body, schedule, query) => client.schedules.save({ params: { name: schedule }, query, body }),
    remove: (client, stored) => client.schedules.remove(paramsOf(stored)),
    agentOf: ({ handlerKey, targetName }) => (handlerKey === 'acp.agent-batch' ? String(targetName) : null),
  }),
  declarationKind<WebhookSaveRequest>({
    kind: 'Webhook',
    dependsOn: [],
    key: name,
    body: WebhookSaveRequest,
    defaults: { headers: {}, enabled: true, labels: {} },
    owner: 'labels',
    nameOf,
    list: async (client) => (await client.webhooks.list()).body,
    save: (client, body, webhook, query) => client.webhooks.save({ params: { name: webhook }, query, body }),
    remove: (client, stored) => client.webhooks.remove(paramsOf(stored)),
    refusal: (members) =>
      isMasked(members)
        ? {
            path: 'headers',
            message: `must have the values themselves: ${masked} stands for what is stored, and only while nothing else changes`,
          }
        : null,
  }),
  declarationKind<InboundTriggerSaveRequest>({
    kind: 'Trigger',
    dependsOn: ['Agent'],
    key: name,
    body: InboundTriggerSaveRequest,
    defaults: {
      targetKind: 'Agent',
      scheme: 'standard',
      payloadMode: 'WholeBody',
      payloadPath: null,
      flow: null,
      enabled: true,
      labels: {},
    },
    owner: 'labels',
    nameOf,
    list: async (client) => (await client.triggers.list()).body,
    save: (client, body, trigger, query) => client.triggers.save({ params: { name: trigger }, query, body }),
    remove: (client, stored) => client.triggers.remove(paramsOf(stored)),
    agentOf: ({ targetName }) => String(targetName),
  }),
  declarationKind<QuotaSaveRequest>({
    kind: 'QuotaRule',
    dependsOn: ['Agent'],
    key: {},
    body: QuotaSaveRequest,
    defaults: { agentName: null, maxRuns: null, maxTokens: null, maxCost: null, enabled: true, labels: {} },
    owner: 'labels',
    namedBy: 'period',
    nameOf: ({ period, agentName }) =>
      typeof agentName === 'string' && agentName !== '' ? `${period}/${agentName}` : String(period),
    list: async (client) => (await client.quotas.list()).body,
    save: (client, body, _name, query) => client.quotas.save({ query, body }),
    remove: (client, stored) => client.quotas.remove({ params: { id: idOf(stored) } }),
    normal: withoutEmptyAgent,
  }),
  declarationKind<Parameters<Client['approvalRules']['create']>[0]['body']>({
    kind: 'ApprovalRule',
    dependsOn: ['Agent'],
    key: {},
    body: ToolApprovalRuleRequest,
    defaults: { agentName: null, argumentConditions: [], labels: {} },
    owner: 'labels',
    namedBy: 'toolName',
    // All that it says is its identity: another condition makes another rule.
    nameOf: ({ toolName, agentName, argumentConditions }) => {
      const conditions = conditionsInOrder(argumentConditions);
      const agent = typeof agentName === 'string' && agentName !== '' ? `/${agentName}` : '';
      return `${toolName}${agent}${conditions.map((condition) => ` ${conditionText(condition)}`).join('')}`;
    },
    // A rule that somebody's `remember` made is bound to a hash of arguments, which nobody can declare.
    list: async (client) =>
      (await client.approvalRules.list()).body.filter(({ argumentsHash }) => argumentsHash === null),
    // What it says is its name: nothing that somebody else changes can be lost.
    save: (client, body, _name, { dryRun = false }) => client.approvalRules.create({ query: { dryRun }, body }),
    remove: (client, stored) => client.approvalRules.remove({ params: { ruleId: idOf(stored) } }),
    // Without labels it would keep those that it has.
    normal: ({ argumentConditions, labels = {}, ...members }) =>
      withoutEmptyAgent({ ...members, labels, argumentConditions: conditionsInOrder(argumentConditions) }),
  }),
  declarationKind<RetentionPolicySaveRequest>({
    kind: 'RetentionPolicy',
    dependsOn: [],
    key: { target: oneOf(retentionTargets) },
    body: RetentionPolicySaveRequest,
    defaults: { maxAgeDays: null, maxRows: null, archive: false, enabled: true, labels: {} },
    owner: 'labels',
    namedBy: 'target',
    nameOf: ({ target }) => String(target),
    list: async (client) => (await client.retention.list()).body,
    save: (client, body, target, query) => client.retention.save({ params: { target }, query, body }),
    remove: (client, { target }) => client.retention.remove({ params: { target: String(target) } }),
  }),
];

export const kindNames: readonly string[] = declarationKinds.map(({ kind }) => kind);

/** By its name in any case, as words of a schema are written; undefined: there is none. */
export const kindOf = (word: unknown): DeclarationKind | undefined =>
  typeof word === 'string' ? declarationKinds.find(({ kind }) => kind.toLowerCase() === word.toLowerCase()) : undefined;

/** What is wrong with a word that names no kind. */
export const unknownKind = (word: unknown): string => {
  const nearest = typeof word === 'string' ? nearestName(word, kindNames) : null;
  return `must be one of ${kindNames.join(', ')}${nearest === null ? '' : `; did you mean ${nearest}?`}`;
};

const pluralOf = (kind: string): string => (kind.endsWith('y') ? `${kind.slice(0, -1)}ies` : `${kind}s`);

/** The same as commands are written: also in the plural, and with hyphens between its words. Throws `validation-failed`. */
export const namedKind = (word: string): DeclarationKind => {
  const plain = word.replaceAll('-', '').toLowerCase();
  const kind = kindOf(plain) ?? declarationKinds.find((one) => pluralOf(one.kind).toLowerCase() === plain);
  if (kind !== undefined) return kind;
  throw new AcpError('validation-failed', `There is no kind "${word}": it is one of ${kindNames.join(', ')}.`);
};

/** How many kinds have to be there before one can be. */
const depthOf = ({ dependsOn }: DeclarationKind): number =>
  Math.max(0, ...dependsOn.map((kind) => 1 + depthOf(kindOf(kind) ?? agentKind)));

/** Kinds so that what one refers to comes before it. */
export const kindsInOrder: readonly DeclarationKind[] = declarationKinds.toSorted(
  (left, right) => depthOf(left) - depthOf(right),
);
