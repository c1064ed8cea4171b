import type { Answer, Body } from './api.ts';

export const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const allScopes = [
  ...['RunsRead', 'RunsWrite', 'AgentsRead', 'AgentsAdmin', 'ExternalInvoke', 'KnowledgeRead', 'KnowledgeAdmin'],
  ...['WorkflowsRead', 'WorkflowsAdmin', 'EvalsRead', 'EvalsAdmin', 'ExperimentsRead', 'ExperimentsAdmin'],
  ...['PlatformRead', 'PlatformAdmin', 'SecurityAdmin', 'AuditRead'],
];

/** Kinds of ids by the name of the member that holds one; `id` and `name` are of the collection that was asked. */
export const kindOfMember = (member: string): string | null => {
  // A task of a protocol is its run.
  if (/(?:run|task)Ids?$/i.test(member)) return 'runs';
  if (/sessionIds?$/i.test(member)) return 'sessions';
  if (/attachmentIds?$/i.test(member)) return 'attachments';
  if (/agentName$/i.test(member)) return 'agents';
  if (/skillName$/i.test(member)) return 'skills';
  if (/approvalIds?$/i.test(member)) return 'approvals';
  if (/^(?:first|last)_id$/.test(member)) return 'items';
  return member === 'entity' ? 'entities' : null;
};

export interface Found {
  readonly kind: string;
  readonly id: string;
  /** The run that it belongs to, where the path of the answer says so. */
  readonly runId: string | null;
}

/** The request of an answer that shows ids. */
export interface Shown {
  readonly method: string;
  readonly path: string;
}

const collectionOf = (path: string, kinds: readonly string[]): string | null => {
  const plain = path.replace(/^\/(?:api|v1)\//, '').replace(/\?.*$/, '');
  if (/^runs\/[^/]+\/feedback/.test(plain)) return 'scores';
  if (/^webhooks\/[^/]+\/deliveries/.test(plain)) return 'deliveries';
  return (
    kinds.filter((kind) => plain === kind || plain.startsWith(`${kind}/`)).sort((a, b) => b.length - a.length)[0] ??
    null
  );
};

/** Every id that an answer shows. */
export const idsIn = (path: string, body: Body, kinds: readonly string[]): Found[] => {
  const found: Found[] = [];
  const collection = collectionOf(path, kinds);
  const runId = /^\/api\/runs\/([0-9a-f-]{36})\//.exec(path)?.[1] ?? null;
  const visit = (value: unknown, member: string, depth: number): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, member, depth);
    else if (typeof value === 'object' && value !== null)
      for (const [name, inner] of Object.entries(value)) visit(inner, name, depth + 1);
    else if (typeof value === 'string' && value !== '') {
      const kind = kindOfMember(member) ?? (depth === 1 && /^(?:id|name)$/.test(member) ? collection : null);
      if (kind !== null) found.push({ kind, id: value, runId });
    }
  };
  visit(body, '', 0);
  return found;
};

/**
 * In another order each time. Behind a proxy that asks one process after another the same place of each id would otherwise be
 * tried at the same process.
 */
export const inAnyOrder = <T>(items: readonly T[]): T[] =>
  items
    .map((item) => ({ item, place: Math.random() }))
    .sort((left, right) => left.place - right.place)
    .map(({ item }) => item);

/** An answer without what differs from request to request. */
export const comparable = ({ status, headers, text }: Answer, ids: readonly string[]): string => {
  const named = ids.reduce(
    (rest, id) => rest.replaceAll(id, '<id>').replaceAll(encodeURIComponent(id), '<id>'),
    text.replace(/"requestId":"[^"]*"/g, '').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'),
  );
  const names = [...headers.keys()].filter((name) => !/^(?:date|content-length|connection|keep-alive)$/.test(name));
  return `${status} ${names.sort().join(' ')}\n${named}`;
};

/** Further ones from the same place take as long, and prove the same. */
const idsOfPlace = 3;

/** The segments of a path that name something: UUIDs, and names that no other test uses. */
const named = /\/[^/?]*[0-9a-f]{8}[^/?]*/g;

/**
 * Tells whether an id is among the first of its kind that a place shows: that is an operation with a status, as far as its
 * path tells.
 */
export const createSelection = (): ((kind: string, request: Shown, status: number) => boolean) => {
  const counts = new Map<string, number>();
  return (kind, { method, path }, status) => {
    const place = `${kind} ${method} ${path.replace(/\?.*$/, '').replace(named, '/{}')} ${status}`;
    const count = (counts.get(place) ?? 0) + 1;
    counts.set(place, count);
    return count <= idsOfPlace;
  };
};
