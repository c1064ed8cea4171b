import type { Client } from '../../client/client.ts';
import { formatTime } from '../../text/format.ts';
import type { Place } from './completion-place.ts';

/** A word that may stand there, and what a shell shows beside it. */
export interface Candidate {
  readonly value: string;
  readonly note?: string | null | undefined;
}

interface Asked {
  readonly client: Client;
  readonly place: Place;
  readonly signal: AbortSignal;
}

type List = (asked: Asked) => Promise<readonly Candidate[]>;

// The newest ones: who looks for an older one copies its id.
const query = { take: 100 };

const first = (place: Place, option: string): string | undefined => place.options[option]?.at(-1);

const lists = {
  agents: async ({ client, signal }) =>
    (await client.agents.list({ signal })).body.map(({ name, displayName }) => ({ value: name, note: displayName })),
  versions: async ({ client, place, signal }) =>
    (await client.agents.versions({ params: { name: place.args[0] ?? '' }, signal })).body.map(
      ({ version, updatedAt }) => ({ value: String(version), note: formatTime(updatedAt) }),
    ),
  runs: async ({ client, signal }) =>
    (await client.runs.list({ query, signal })).body.map(({ id, agentName, status, createdAt }) => ({
      value: id,
      note: `${agentName} ${status} ${formatTime(createdAt)}`,
    })),
  scores: async ({ client, place, signal }) =>
    (await client.scores.list({ params: { runId: place.args[0] ?? '' }, signal })).body.map(({ id, name }) => ({
      value: id,
      note: name,
    })),
  sessions: async ({ client, place, signal }) => {
    const agentName = place.path[0] === 'run' ? place.args[0] : first(place, 'agentName');
    const asked = agentName === undefined ? query : { ...query, agentName };
    return (await client.sessions.list({ query: asked, signal })).body.map(({ id, agentName, updatedAt }) => ({
      value: id,
      note: `${agentName} ${formatTime(updatedAt)}`,
    }));
  },
  requests: async ({ client, place, signal }) => {
    const sessionId = first(place, 'session');
    if (sessionId === undefined) return [];
    const { body } = await client.sessions.get({ params: { sessionId }, signal });
    const open = body.openRequests.filter(({ kind }) => kind === 'Approval');
    return [...open.map(({ id, toolName }) => ({ value: id, note: toolName })), { value: 'all' }];
  },
  approvals: async ({ client, signal }) =>
    (await client.approvals.list({ query, signal })).body.map(({ id, agentName, toolName }) => ({
      value: id,
      note: `${agentName} ${toolName}`,
    })),
  rules: async ({ client, signal }) =>
    (await client.approvalRules.list({ signal })).body.map(({ id, agentName, toolName }) => ({
      value: id,
      note: `${agentName ?? '*'} ${toolName}`,
    })),
  attachments: async ({ client, signal }) =>
    (await client.attachments.list({ query, signal })).body.map(({ id, fileName }) => ({ value: id, note: fileName })),
  jobs: async ({ client, signal }) =>
    (await client.jobs.list({ query: { ...query, background: false }, signal })).body.map(
      ({ id, targetName, status }) => ({
        value: id,
        note: `${targetName ?? ''} ${status}`,
      }),
    ),
  schedules: async ({ client, signal }) =>
    (await client.schedules.list({ signal })).body.map(({ name, cron, targetName }) => ({
      value: name,
      note: `${targetName} ${cron ?? ''}`,
    })),
  webhooks: async ({ client, signal }) =>
    (await client.webhooks.list({ signal })).body.map(({ name, url }) => ({ value: name, note: url })),
  mcpServers: async ({ client, signal }) =>
    (await client.mcpServers.list({ signal })).body.map(({ name, endpoint }) => ({ value: name, note: endpoint })),
  remoteAgents: async ({ client, signal }) =>
    (await client.remoteAgents.list({ signal })).body.map(({ name, cardUrl }) => ({ value: name, note: cardUrl })),
  prompts: async ({ client, place, signal }) =>
    (await client.mcpServers.prompts({ params: { name: place.args[0] ?? '' }, signal })).body.map(
      ({ name, title }) => ({
        value: name,
        note: title,
      }),
    ),
  triggers: async ({ client, signal }) =>
    (await client.triggers.list({ signal })).body.map(({ name, targetName }) => ({ value: name, note: targetName })),
  skills: async ({ client, signal }) =>
    (await client.skills.list({ signal })).body.map(({ name, description }) => ({ value: name, note: description })),
  tools: async ({ client, signal }) =>
    (await client.tools.list({ signal })).body.map(({ name, description }) => ({ value: name, note: description })),
  quotas: async ({ client, signal }) =>
    (await client.quotas.list({ signal })).body.map(({ id, agentName, period }) => ({
      value: id,
      note: `${agentName ?? 'tenant'} ${period}`,
    })),
  keys: async ({ client, signal }) =>
    (await client.keys.list({ signal })).body.map(({ id, name }) => ({ value: id, note: name })),
  tenants: async ({ client, signal }) =>
    (await client.tenants.list({ signal })).body.map(({ slug, displayName }) => ({ value: slug, note: displayName })),
  providers: async ({ client, signal }) =>
    (await client.models.list({ signal })).body.map(({ name, displayName }) => ({ value: name, note: displayName })),
  models: async ({ client, signal }) =>
    (await client.models.list({ signal })).body.flatMap(({ name, models }) =>
      models.map((model) => ({ value: `${name}/${model.name}`, note: model.displayName })),
    ),
  kinds: async () => {
    const { kindNames } = await import('../declarations/declaration-kinds.ts');
    return kindNames.map((value) => ({ value }));
  },
  declared: async ({ client, place }) => {
    const { namedKind } = await import('../declarations/declaration-kinds.ts');
    const kind = namedKind(place.args[0] ?? '');
    return (await kind.list(client, null)).map((stored) => ({ value: kind.nameOf(stored) }));
  },
} as const satisfies Record<string, List>;

type ListName = keyof typeof lists;

/** Arguments by their own name, else by the commands that lead to them. */
const listOfArgument: Readonly<Record<string, ListName>> = {
  agent: 'agents',
  'run-id': 'runs',
  'run-a': 'runs',
  'run-b': 'runs',
  'session-id': 'sessions',
  skill: 'skills',
  'skill-name': 'skills',
  provider: 'providers',
  'tenant-id': 'tenants',
  slug: 'tenants',
  'rule-id': 'rules',
  'score-id': 'scores',
  version: 'versions',
  a: 'versions',
  b: 'versions',
  'get kind': 'kinds',
  'get name': 'declared',
  'agents name': 'agents',
  'skills name': 'skills',
  'attachments id': 'attachments',
  'approvals id': 'approvals',
  'jobs id': 'jobs',
  'schedules name': 'schedules',
  'webhooks name': 'webhooks',
  'a2a name': 'remoteAgents',
  'mcp name': 'mcpServers',
  'mcp prompt': 'prompts',
  'triggers name': 'triggers',
  'quotas id': 'quotas',
  'keys id': 'keys',
};

const listOfOption: Readonly<Record<string, ListName>> = {
  agent: 'agents',
  'agent-name': 'agents',
  'callable-agent-names': 'agents',
  'agent-version': 'versions',
  session: 'sessions',
  'session-id': 'sessions',
  'parent-run-id': 'runs',
  'root-run-id': 'runs',
  'attachment-ids': 'attachments',
  'tool-name': 'tools',
  'tool-names': 'tools',
  'skill-names': 'skills',
  'allowed-providers': 'providers',
  model: 'models',
  tenant: 'tenants',
  schedule: 'schedules',
  approve: 'requests',
  reject: 'requests',
};

/** The list of the service that the word at a place comes from; undefined where there is none. */
export const listAt = ({ expected, path }: Place): List | undefined => {
  let name: ListName | undefined;
  if (expected.is === 'value') name = listOfOption[expected.of.name()];
  if (expected.is === 'argument') {
    const argument = expected.of.name();
    name = listOfArgument[argument] ?? listOfArgument[`${path[0]} ${argument}`];
  }
  return name === undefined ? undefined : lists[name];
};
