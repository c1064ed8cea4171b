import type { Body } from './api.ts';

/** One place of an operation that an id can stand in. */
export interface Slot {
  readonly name: string;
  readonly method: string;
  /** What the id names: the collection below `/api`. */
  readonly kind: string;
  /** True: nothing but a UUID can stand there. */
  readonly isUuid: boolean;
  /** A message of a protocol that tells errors in its own way, whatever the status. */
  readonly isMessage?: true;
  request(
    id: string,
    runId: string | null,
  ): {
    readonly path: string;
    readonly body: unknown;
    readonly headers?: Readonly<Record<string, string>>;
    /** Sent as it is instead of the body. */
    readonly raw?: string;
  };
}

/**
 * No ids of the caller's tenant: labels of tenants, providers and remote agents of the host, the closed set of retention targets, the address
 * of a trigger, which has its tenant in it and knows its callers by their signature, and the one that people come back to from
 * an authorization server, who are known by a state alone.
 */
const nobodys =
  /^\/api\/(?:(?:tenants|models|retention|remote-agents)\b|triggers\/\{tenantId\}|mcp-servers\/\{name\}\/oauth\/callback)/;

const kindOfParameter = (path: string, name: string): string | null => {
  if (/runId$/i.test(name) || /\/runs\/\{[ab]\}/.test(path)) return 'runs';
  if (name === 'sessionId') return 'sessions';
  if (name === 'agentName' || name === 'agent') return 'agents';
  if (name === 'skillName') return 'skills';
  if (name === 'scoreId') return 'scores';
  if (name === 'beforeId') return 'audit';
  // No server of the caller has a prompt of such a name, whosever it is.
  if (name === 'prompt') return 'mcp-servers';
  if (name === 'entity') return 'entities';
  if (name === 'model') return 'agents';
  if (name === 'responseId') return 'responses';
  if (name === 'conversationId') return 'conversations';
  if (name === 'itemId') return 'items';
  if (name === 'id' && path.includes('/deliveries/{id}')) return 'deliveries';
  const before = path.slice(0, path.indexOf(`{${name}}`));
  return /^\/api\/[^{]+\/$/.test(before) ? before.slice('/api/'.length, -1) : null;
};

export const resolve = (document: Body, schema: Body): Body =>
  typeof schema?.$ref === 'string'
    ? schema.$ref
        .slice(2)
        .split('/')
        .reduce((part: Body, name: string) => part[name], document)
    : schema;

/** The smallest value that fits; what a schema cannot say is given by name. */
const sample = (document: Body, given: Body): Body => {
  const schema = resolve(document, given);
  const first = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (first !== undefined) return sample(document, first);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'object' || schema.properties !== undefined)
    return Object.fromEntries(
      (schema.required ?? []).map((name: string) => [name, sample(document, schema.properties?.[name] ?? {})]),
    );
  if (type === 'array') return schema.minItems > 0 ? [sample(document, schema.items)] : [];
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return true;
  return type === 'string' ? 'x'.repeat(Math.max(1, schema.minLength ?? 1)) : {};
};

const model = { provider: 'demo', model: 'demo-1' };

const bodies: Readonly<Record<string, (id: string) => unknown>> = {
  'agents.save': (name) => ({ name, model }),
  'agents.estimate': () => ({ message: 'x' }),
  'policyTests.run': () => ({ quota: [{ period: 'Daily', maxRuns: 0 }], take: 1000 }),
  'runs.start': () => ({ message: 'x', stream: false }),
  'schedules.save': () => ({ handlerKey: 'acp.retention', targetName: '*' }),
  'scores.save': () => ({ kind: 'Stars', value: 3 }),
  'mcpServers.save': () => ({ endpoint: 'https://mcp.invalid/' }),
  'webhooks.retryRange': () => ({ from: '2026-01-01T00:00:00Z' }),
  'conversations.update': () => ({ metadata: {} }),
  'skills.save': (name) => ({ name, description: 'x', instructions: 'x' }),
};

/** A body that an operation takes. */
export const smallestBody = (document: Body, operationId: string, schema: Body, id: string): Body =>
  bodies[operationId]?.(id) ?? sample(document, schema ?? {});

/** Every slot of every operation of an OpenAPI document; `ownRun` stands where an operation takes two runs. */
export const operationSlots = (
  document: Body,
  ownRun: string,
): { slots: readonly Slot[]; kinds: readonly string[]; unjudged: Set<string> } => {
  const slots: Slot[] = [];
  const unjudged = new Set<string>();
  for (const [path, methods] of Object.entries<Body>(document.paths))
    for (const [method, operation] of Object.entries<Body>(methods)) {
      if (nobodys.test(path)) continue;
      const parameters = (operation.parameters ?? []).map((one: Body) => resolve(document, one));
      const json = operation.requestBody?.content?.['application/json']?.schema;
      const id = operation.operationId;
      for (const { name, in: place, schema } of parameters) {
        if (place !== 'path' && place !== 'query') continue;
        const kind = kindOfParameter(path, name);
        const isUpload = operation.requestBody !== undefined && json === undefined;
        if (kind === null || isUpload) {
          if (place === 'path' && kind === null && !/^[ab]$/.test(name)) unjudged.add(`${id} {${name}}`);
          continue;
        }
        slots.push({
          name: `${id} ${place}:${name}`,
          method: method.toUpperCase(),
          kind,
          isUuid: schema?.format === 'uuid',
          request(value, runId) {
            const filled = path.replace(/\{(\w+)\}/g, (_braces, parameter: string) => {
              if (parameter === name) return encodeURIComponent(value);
              if (/^[ab]$/.test(parameter)) return path.includes('/runs/') ? ownRun : '1';
              if (parameter === 'runId') return runId ?? ownRun;
              const other = parameters.find((one: Body) => one.name === parameter);
              return other?.schema?.format === 'uuid' ? ownRun : '1';
            });
            const needed = parameters.filter((one: Body) => one.in === 'query' && one.required && one.name !== name);
            const query = new URLSearchParams([
              ...(place === 'query' ? [[name, value]] : []),
              ...needed.map((one: Body) => [one.name, String(sample(document, one.schema))]),
            ]);
            const body = json === undefined ? undefined : smallestBody(document, id, json, value);
            return { path: query.size === 0 ? filled : `${filled}?${query}`, body };
          },
        });
      }
    }
  return { slots, kinds: [...new Set(slots.map(({ kind }) => kind))], unjudged };
};
