import type { Body } from './api.ts';
import { resolve, type Slot, smallestBody } from './second-tenant.slots.ts';
import { kindOfMember } from './shown-ids.ts';

/** What belongs to the owner of a run; everything else is the tenant's. */
export const ownedKinds: ReadonlySet<string> = new Set([
  'runs',
  'sessions',
  'attachments',
  'approvals',
  'scores',
  'keys',
]);

/** Refused in words of their own, which the rules ask for: nothing is found there that could be answered as unknown. */
export const refusals: Readonly<Record<string, readonly [status: number, code: string]>> = {
  'runs.start body:sessionId': [403, 'session-not-owned'],
  'attachments.upload query:sessionId': [403, 'session-not-owned'],
  'sessions.branch body:newSessionId': [409, 'session-exists'],
};

/** Of operations that name the agent in the body. */
const bodiesOfNobody: Readonly<Record<string, Body>> = {
  'chatCompletions.create': { model: 'no-such-agent', messages: [{ role: 'user', content: 'x' }] },
  'embeddings.create': { model: 'no-such-agent', input: 'x' },
  'responses.create': { model: 'no-such-agent', input: 'x' },
};

const fill = (path: string, values: Readonly<Record<string, string>>): string =>
  path.replace(/\{(\w+)\}/g, (_braces, name: string) => encodeURIComponent(values[name] ?? '1'));

const file = [
  '--cut',
  'Content-Disposition: form-data; name="file"; filename="a.txt"',
  'Content-Type: text/plain',
  '',
  'x',
  '--cut--',
  '',
];

/** The places of ids that are in no path: members of bodies, queries of uploads, and keys that repeat a request. */
export const otherSlots = (document: Body, own: Readonly<Record<string, string>>): readonly Slot[] => {
  const slots: Slot[] = [];
  for (const [path, methods] of Object.entries<Body>(document.paths))
    for (const [verb, operation] of Object.entries<Body>(methods)) {
      const { operationId, requestBody } = operation;
      const content = requestBody?.content ?? {};
      const schema =
        content['application/json'] === undefined ? null : resolve(document, content['application/json'].schema);
      const method = verb.toUpperCase();
      const add = (name: string, kind: string, request: Slot['request']): void => {
        slots.push({ name: `${operationId} ${name}`, method, kind, isUuid: false, request });
      };
      for (const parameter of operation.parameters ?? []) {
        const { name, in: place } = resolve(document, parameter);
        if (place === 'header' && name === 'idempotency-key')
          // No agent of this name: only a key that is known to somebody is answered before that is told.
          add(`header:${name}`, 'keys', (key) => ({
            path: fill(path, {}),
            body: bodiesOfNobody[operationId] ?? smallestBody(document, operationId, schema, ''),
            headers: { [name]: key },
          }));
        if (place === 'query' && content['multipart/form-data'] !== undefined && kindOfMember(name) !== null)
          add(`query:${name}`, kindOfMember(name) ?? '', (id) => ({
            path: `${fill(path, own)}?${name}=${encodeURIComponent(id)}`,
            body: undefined,
            headers: { 'content-type': 'multipart/form-data; boundary=cut' },
            raw: file.join('\r\n'),
          }));
      }
      for (const [name, member] of Object.entries<Body>(schema?.properties ?? {})) {
        const kind = kindOfMember(name);
        if (kind === null || !ownedKinds.has(kind)) continue;
        const isList = JSON.stringify(resolve(document, member)).includes('"array"');
        add(`body:${name}`, kind, (id) => ({
          path: fill(path, own),
          body: { ...smallestBody(document, operationId, schema, ''), [name]: isList ? [id] : id },
        }));
      }
    }
  return slots;
};

/** Operations without an id whose answer may show one: lists, and what looks through everything. */
export const listings = (
  document: Body,
): readonly { readonly name: string; readonly method: string; readonly path: string; readonly body: unknown }[] => {
  const shows = (given: Body, depth: number): boolean => {
    const schema = resolve(document, given ?? {});
    if (depth > 8) return false;
    return (
      Object.entries<Body>(schema.properties ?? {}).some(
        ([name, member]) => ownedKinds.has(kindOfMember(name) ?? '') || shows(member, depth + 1),
      ) ||
      [schema.items, ...(schema.anyOf ?? []), ...(schema.allOf ?? [])].some(
        (part) => part !== undefined && shows(part, depth + 1),
      )
    );
  };
  const ownLists = /^\/api\/(?:runs|sessions|attachments|approvals\/pending|jobs)$/;
  return Object.entries<Body>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Body>(methods).flatMap(([verb, { operationId: name, requestBody, responses }]) => {
      const answer = responses['200']?.content?.['application/json']?.schema;
      const isRead = verb === 'get' || name === 'policyTests.run';
      if (!isRead || path.includes('{') || answer === undefined) return [];
      if (!ownLists.test(path) && !shows(answer, 0)) return [];
      const schema = requestBody?.content?.['application/json']?.schema ?? null;
      const body = schema === null ? undefined : smallestBody(document, name, resolve(document, schema), '');
      return [{ name, method: verb.toUpperCase(), path: verb === 'get' ? `${path}?take=200` : path, body }];
    }),
  );
};
