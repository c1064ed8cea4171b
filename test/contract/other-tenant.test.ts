import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { apiKeyScopes } from '../../src/contract/authority.ts';
import type { Answer, Body } from '../conformance/api.ts';
import { operationSlots, type Slot } from '../conformance/second-tenant.slots.ts';
import { comparable } from '../conformance/shown-ids.ts';
import { forEachDurableHttpService } from '../support/app.ts';
import { ownedThings, sharedName } from './owned-things.ts';

const token = 'shared-token-of-the-owner';

/** Bodies that the other tenant may send; the smallest one of the schema is refused before anything is looked up. */
const bodies: Readonly<Record<string, unknown>> = {
  'webhooks.save': {
    url: 'http://127.0.0.1:9/',
    events: ['webhook.test'],
    secretConfigurationKey: 'Service:WebhookSecrets:other:own',
  },
  'triggers.save': { targetName: sharedName, secretConfigurationKey: 'Service:TriggerSecrets:other:own' },
  'agents.rollback': { version: 1 },
};

/** What they answer has the time of the call in it. */
const timed: ReadonlySet<string> = new Set(['replays.bundle', 'dataSubjects.export']);

/** Without the id of what a save has just made. */
const withoutMade = (text: string): string => text.replace(/"id":"[0-9a-f-]{36}","tenantId":"other"/, '');

const unknownOf = (kind: string): string => {
  if (kind === 'entities') return `agent:x${randomUUID()}`;
  return kind === 'mcp-servers' ? `x${randomUUID().slice(0, 8)}` : randomUUID();
};

/** Reads come first, and what makes the other tenant a thing of that name comes last. */
const rank = ({ method }: Slot): number => ['GET', 'POST', 'DELETE', 'PUT'].indexOf(method);

const read = async (url: string, slot: Pick<Slot, 'method'>, request: ReturnType<Slot['request']>, key: string) => {
  const response = await fetch(url + request.path, {
    method: slot.method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(request.body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
    signal: AbortSignal.timeout(20_000),
  });
  const answer: Answer = {
    status: response.status,
    headers: response.headers,
    body: undefined,
    text: await response.text(),
  };
  return answer;
};

forEachDurableHttpService('SEC-25 another tenant finds an id of the owner nowhere and changes nothing', async (open, t) => {
  const { app, ids, runId } = await ownedThings(open, t, token);
  const other = app.inTenant('other');
  await other.agents.create({ body: { name: sharedName, model: { provider: 'demo', model: 'demo-1' } } });
  const own = await other.runs.start({ params: { name: sharedName }, body: { message: 'Mine', stream: false } });
  const { plaintextKey } = (
    await other.keys.create({ body: { name: 'other', role: 'Admin', scopes: [...apiKeyScopes] } })
  ).body;
  const described = await fetch(`${app.url}/openapi.json`, { headers: { authorization: `Bearer ${token}` } });
  const document = (await described.json()) as Body;
  const { slots, kinds, unjudged } = operationSlots(document, String(own.headers['x-run-id']));
  assert.deepEqual([...unjudged], []);
  assert.deepEqual(Object.keys(ids).sort(), [...kinds].sort(), 'the owner has a thing of every kind that a slot takes');

  const requestOf = (slot: Slot, id: string, ofRun: string | null) => {
    const request = slot.request(id, ofRun);
    const body = bodies[slot.name.split(' ')[0] ?? ''];
    return body === undefined ? request : { ...request, body };
  };
  const views = slots.filter(({ method, name }) => method === 'GET' && !timed.has(name.split(' ')[0] ?? ''));
  const seenByOwner = async () => {
    const seen: [string, string, string][] = [];
    for (const slot of views)
      for (const id of ids[slot.kind] ?? []) {
        const { status, text } = await read(app.url, slot, slot.request(id, runId), token);
        if (status === 200) seen.push([slot.name, id, text]);
      }
    return seen;
  };
  const before = await seenByOwner();
  for (const slot of [...slots].sort((left, right) => rank(left) - rank(right)))
    await t.test(slot.name, async () => {
      const unknownId = unknownOf(slot.kind);
      const unknownRun = randomUUID();
      const missing = await read(app.url, slot, requestOf(slot, unknownId, unknownRun), plaintextKey);
      const expected = withoutMade(comparable(missing, [unknownId, unknownRun]));
      for (const id of ids[slot.kind] ?? []) {
        const found = await read(app.url, slot, requestOf(slot, id, runId), plaintextKey);
        assert.equal(withoutMade(comparable(found, [id, runId])), expected);
      }
    });
  assert.deepEqual(await seenByOwner(), before);
});
